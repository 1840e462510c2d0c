// quic_server: replays recorded responses over QUIC v1 and HTTP/3 from one
// address.

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "certificate.h"
#include "match_lines.h"
#include "options.h"
#include "recorded_responses.h"
#include "replay.h"
#include "replay_backend.h"
#include "replay_server.h"
#include "request_log.h"

namespace eyelevel {
namespace {

absl::Status Serve(const Options& options, Replay& replay) {
  auto certificate = LoadCertificate(options.certificate, options.key);
  if (!certificate.ok()) {
    return certificate.status();
  }
  RequestLog log;
  if (!options.request_log.empty()) {
    absl::StatusOr<RequestLog> opened = RequestLog::Open(options.request_log);
    if (!opened.ok()) {
      return opened.status();
    }
    log = *std::move(opened);
  }
  const std::string& qlog = options.settings.qlog;
  if (!qlog.empty() && access(qlog.c_str(), W_OK | X_OK) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write qlogs to ", qlog,
                                               ": ", std::strerror(errno)));
  }
  ReplayBackend backend(replay, log, options.think_time);
  ReplayServer server(*std::move(certificate), &backend, options.settings);
  absl::Status listening = server.Listen(options.address);
  if (!listening.ok()) {
    return listening;
  }
  // From here on an error is told by quiche's log or by nobody.
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kError);

  std::set<absl::string_view> hosts;
  for (const auto& response : replay.responses()) {
    hosts.insert(response->authority);
  }
  std::cout << "listening on " << server.address().ToString() << ": "
            << replay.responses().size() << " responses of " << hosts.size()
            << " hosts" << std::endl;
  server.ServeUntilSignal();
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  absl::StatusOr<RecordedResponses> responses =
      LoadRecordedResponses(options.responses);
  if (!responses.ok()) {
    return responses.status();
  }
  Replay replay(*std::move(responses));
  return options.match ? MatchLines(std::cin, replay, std::cout)
                       : Serve(options, replay);
}

}  // namespace
}  // namespace eyelevel

int main(int argc, char** argv) {
  const auto options = eyelevel::ParseCommandLine(argc, argv);
  if (const int* const status = std::get_if<int>(&options)) {
    return *status;
  }
  // An error that this program can explain itself gets one line.
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);
  absl::InitializeLog();
  const absl::Status status =
      eyelevel::Run(std::get<eyelevel::Options>(options));
  return status.ok() ? 0 : eyelevel::Fail(1, status.message());
}
