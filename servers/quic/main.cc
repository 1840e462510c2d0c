// quic_server: replays recorded responses over QUIC v1 and HTTP/3.

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "certificate.h"
#include "endpoints.h"
#include "match_lines.h"
#include "options.h"
#include "quiche/quic/core/crypto/proof_source.h"
#include "recorded_responses.h"
#include "replay.h"
#include "replay_backend.h"
#include "replay_server.h"
#include "request_log.h"
#include "server_processes.h"

namespace eyelevel {
namespace {

absl::Status ServeOn(const quic::QuicSocketAddress& address,
                     std::unique_ptr<quic::ProofSource> certificate,
                     Replay& replay, RequestLog& log, const Options& options) {
  ReplayBackend backend(replay, log, options.think_time);
  ReplayServer server(std::move(certificate), &backend, options.settings);
  absl::Status listening = server.Listen(address);
  if (!listening.ok()) {
    return listening;
  }
  // From here on an error is told by quiche's log or by nobody.
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kError);
  // Not by std::cout, whose buffer would take a page of each process.
  const std::string line =
      absl::StrCat("listening on ", server.address().ToString(), "\n");
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot write to the standard output: ", std::strerror(errno)));
  }
  server.ServeUntilSignal();
  return absl::OkStatus();
}

// All that the servers share.
struct Content {
  std::unique_ptr<Replay> replay;
  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<quic::ProofSource>> certificates;
};

absl::Status Load(const Options& options, Content& content) {
  absl::StatusOr<RecordedResponses> responses =
      LoadRecordedResponses(options.responses);
  if (!responses.ok()) {
    return responses.status();
  }
  content.replay = std::make_unique<Replay>(*std::move(responses));
  if (options.match) {
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Endpoint>> endpoints =
      LoadEndpoints(options.endpoints);
  if (!endpoints.ok()) {
    return endpoints.status();
  }
  content.endpoints = *std::move(endpoints);
  for (const Endpoint& endpoint : content.endpoints) {
    auto certificate = LoadCertificate(endpoint.certificate, endpoint.key);
    if (!certificate.ok()) {
      return certificate.status();
    }
    content.certificates.push_back(*std::move(certificate));
  }
  return absl::OkStatus();
}

absl::Status Serve(const Options& options, Content& content) {
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
  std::vector<std::string> names;
  names.reserve(content.endpoints.size());
  for (const Endpoint& endpoint : content.endpoints) {
    names.push_back(endpoint.address.ToString());
  }
  return RunServers(names, [&](size_t place) {
    return ServeOn(content.endpoints[place].address,
                   std::move(content.certificates[place]), *content.replay, log,
                   options);
  });
}

absl::Status Run(const Options& options) {
  Content content;
  absl::Status loaded;
  // A thread has a heap of its own. In this one's each server would put what it
  // needs into the holes between what all share, and so get a copy of that.
  try {
    std::thread([&] { loaded = Load(options, content); }).join();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread can be started to load the responses: ",
                     error.code().message()));
  }
  if (!loaded.ok()) {
    return loaded;
  }
  return options.match ? MatchLines(std::cin, *content.replay, std::cout)
                       : Serve(options, content);
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
