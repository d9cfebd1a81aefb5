#pragma once

// All that the generic kernels and vocabularies include: it must come before a region opens.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/built_tables.h"
#include "kernels/stored_blocks.h"
#include "kernels/unroll.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/tensor/block_format.h"
#include "qgen/tensor/convert.h"
