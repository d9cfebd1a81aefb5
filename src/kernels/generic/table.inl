// All generic kernels of one instruction set as a table.

constexpr KernelTable generic_table(std::string_view name) {
  KernelTable table{};
  table.name = name;
  table.packed[static_cast<std::size_t>(PackedType::f32)] = float_panels<F32>();
  table.packed[static_cast<std::size_t>(PackedType::f16)] = float_panels<F16>();
  table.packed[static_cast<std::size_t>(PackedType::bf16)] = float_panels<Bf16>();
  table.packed[static_cast<std::size_t>(PackedType::q8)] = integer_kernels<Q8>(pack_integer_panel<Q8, false>);
  table.packed[static_cast<std::size_t>(PackedType::q4)] = integer_kernels<Q4>(pack_integer_panel<Q4, false>);
  table.packed[static_cast<std::size_t>(PackedType::q4_1)] = integer_kernels<Q4_1>(nullptr);
  table.packed[static_cast<std::size_t>(PackedType::q4_k)] = integer_kernels<Q4K>(nullptr);
  table.packed[static_cast<std::size_t>(PackedType::q6_k)] = integer_kernels<Q6K>(nullptr);
  table.packed[static_cast<std::size_t>(PackedType::q8_rotated)] = rotated_integer_kernels<Q8>();
  table.pack_blocks = block_packing();
  table.kv = {kv_kernels<F32>(), kv_kernels<F16>(), kv_kernels<Bf16>(), kv_kernels<I8>()};
  table.widen = {widen<F32>,      widen<F16>,      widen<Bf16>,     dequantize_q8_0,   dequantize_q4_0,
                 dequantize_q4_1, dequantize_q5_0, dequantize_q5_1, dequantize_q2_k,   dequantize_q3_k,
                 dequantize_q4_k, dequantize_q5_k, dequantize_q6_k, dequantize_iq4_nl, dequantize_iq4_xs};
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.silu_mul = silu_mul;
  table.add = add;
  table.mul = mul;
  table.scale = scale;
  table.merge = merge;
  table.best = best;
  table.probe = {probe_read, probe_f32, nullptr, nullptr};
  return table;
}
