// Where quiche's server gets its responses: a recorded site.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "quiche/common/http/http_header_block.h"
#include "quiche/quic/core/quic_alarm.h"
#include "quiche/quic/tools/quic_simple_server_backend.h"
#include "replay.h"
#include "request_log.h"

namespace eyelevel {

class ReplayBackend : public quic::QuicSimpleServerBackend {
 public:
  // `replay` and `log` must outlive the backend and the server that uses it:
  // bodies are sent from where they lie. With `think_time` a response is sent
  // as long after its request as when it was recorded.
  ReplayBackend(Replay& replay, RequestLog& log, bool think_time)
      : replay_(replay), log_(log), think_time_(think_time) {}

  bool InitializeBackend(const std::string&) override { return true; }
  bool IsBackendInitialized() const override { return true; }
  void FetchResponseFromBackend(const quiche::HttpHeaderBlock& request_headers,
                                const std::string& request_body,
                                RequestHandler* handler) override;
  void CloseBackendResponseStream(RequestHandler* handler) override;
  // WebSockets then go to TCP, as they do with servers that speak plain HTTP/3.
  bool SupportsExtendedConnect() override { return false; }

 private:
  Replay& replay_;
  RequestLog& log_;
  const bool think_time_;
  absl::flat_hash_map<RequestHandler*, std::unique_ptr<quic::QuicAlarm>> late_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_
