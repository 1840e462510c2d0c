// How well a recorded response fits a request by what its URL does not tell: a
// range, and whether the client has the resource already.
//
// servers/fit.py is the same for the TCP side.

#ifndef EYELEVEL_SERVERS_QUIC_FIT_H_
#define EYELEVEL_SERVERS_QUIC_FIT_H_

#include "absl/strings/string_view.h"

namespace eyelevel {

// Best first.
enum class Fit {
  kAsAsked,  // The range that was asked for; or no range was, and it is none.
  kShorter,  // The range's beginning.
  kWhole,  // Everything, though a range was asked for (RFC 9110 section 14.2).
  kNot,    // Another range; a part where everything was asked for; a 304 for
           // a client that has nothing.
};

// `range` is the request's Range, empty when there is none; `conditional`
// whether it has If-None-Match or If-Modified-Since. `status` and
// `content_range` are the response's.
Fit FitOf(absl::string_view range, bool conditional, absl::string_view status,
          absl::string_view content_range);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_FIT_H_
