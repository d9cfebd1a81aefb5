#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QGEN_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QGEN_SANITIZED true
#endif
#endif
#ifndef QGEN_SANITIZED
#define QGEN_SANITIZED false
#endif

namespace qgen::test {

/// Whether the tests run under a sanitizer, which takes its own time and memory.
inline constexpr bool kSanitized = QGEN_SANITIZED;

}  // namespace qgen::test
