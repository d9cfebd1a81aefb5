// Closes the region that region_begin.h opened.
#if defined(__clang__)
QGEN_PRAGMA(clang attribute pop)
#else
QGEN_PRAGMA(GCC pop_options)
#endif
#undef QGEN_PRAGMA
#undef QGEN_PRAGMA_OF
#undef QGEN_REGION_TARGET
