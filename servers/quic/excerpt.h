// Excerpts of foreign files, for error messages.

#ifndef EYELEVEL_SERVERS_QUIC_EXCERPT_H_
#define EYELEVEL_SERVERS_QUIC_EXCERPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace eyelevel {

// The beginning of `text` on one line of printable ASCII: a terminal obeys
// control characters.
std::string Excerpt(absl::string_view text);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_EXCERPT_H_
