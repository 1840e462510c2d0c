// quic_server's command line.

#ifndef EYELEVEL_SERVERS_QUIC_OPTIONS_H_
#define EYELEVEL_SERVERS_QUIC_OPTIONS_H_

#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "settings.h"

namespace eyelevel {

struct Options {
  std::string endpoints;
  std::string responses;
  std::string request_log;
  Settings settings;
  bool think_time = false;
  bool match = false;  // Serve nothing; of the others only `responses` is set.
};

// The options, or the exit status when there is nothing more to do: --help and
// --version have been answered, or the usage is bad and stderr says how.
std::variant<Options, int> ParseCommandLine(int argc, char** argv);

// Tells the error in one line on stderr; returns `status`.
int Fail(int status, absl::string_view message);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_OPTIONS_H_
