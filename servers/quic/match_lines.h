// The matching rule on the command line, without a client.

#ifndef EYELEVEL_SERVERS_QUIC_MATCH_LINES_H_
#define EYELEVEL_SERVERS_QUIC_MATCH_LINES_H_

#include <istream>
#include <ostream>

#include "absl/status/status.h"
#include "replay.h"

namespace eyelevel {

// Reads requests, one a line:
// METHOD<TAB>URL[<TAB>ORIGIN<TAB>REQUESTED-METHOD<TAB>REQUESTED-HEADERS], the
// last three being headers of a CORS preflight. Writes for each
// KIND<TAB>FILE<TAB>STATUS<TAB>BODY-BYTES and then the headers as they would be
// sent, one a line after a tab.
absl::Status MatchLines(std::istream& requests, Replay& replay,
                        std::ostream& answers);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_MATCH_LINES_H_
