// The limits of a recorded site. record/limits.py has the same numbers, and a
// test compares them: a site that can be imported can be served.

#ifndef EYELEVEL_SERVERS_QUIC_SITE_LIMITS_H_
#define EYELEVEL_SERVERS_QUIC_SITE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace eyelevel {

inline constexpr size_t kMaxHosts = 2000;
inline constexpr size_t kMaxExchanges = 50'000;

// The limits of one response, without the fields that the testbed adds
// (X-Original-*).
inline constexpr size_t kMaxHeaderFields = 1000;
inline constexpr size_t kMaxHeaderBytes = 60 * 1024;

inline constexpr size_t kMaxUrlBytes = 24 * 1024;
// Status line and header fields, the testbed's among them.
inline constexpr size_t kMaxHeadBytes = 1 << 20;
inline constexpr size_t kMaxBodyBytes = 256 << 20;
// Longer waits are cut to this.
inline constexpr double kMaxThinkTimeMs = 60'000;

inline constexpr uint64_t kMaxFileBytes = kMaxBodyBytes + kMaxHeadBytes;
// The bodies of a site have 2 GiB at most. The rest is for all header fields
// and for what makes pages repeatable.
inline constexpr uint64_t kMaxSiteBytes = uint64_t{3} << 30;

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SITE_LIMITS_H_
