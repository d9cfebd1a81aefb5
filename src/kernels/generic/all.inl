// Every generic kernel, lower ones first. Included by the ISA files inside their region and namespace, after
// a vocabulary.
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_few.inl"
#include "kernels/generic/panel_many.inl"
#include "kernels/generic/panel_integer.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/panel_integer_pack.inl"
#include "kernels/generic/panel_stored.inl"
#include "kernels/generic/panel_integer_input.inl"
#include "kernels/generic/panel_integer_few.inl"
#include "kernels/generic/panel_integer_many.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/attention.inl"
#include "kernels/generic/probe.inl"
#include "kernels/generic/table.inl"
// clang-format on
