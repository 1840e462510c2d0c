// Where quiche's server gets its responses: a recorded site.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_

#include <string>

#include "quiche/common/http/http_header_block.h"
#include "quiche/quic/tools/quic_simple_server_backend.h"
#include "replay.h"
#include "request_log.h"

namespace eyelevel {

class ReplayBackend : public quic::QuicSimpleServerBackend {
 public:
  // `replay` and `log` must outlive the backend and the server that uses it:
  // bodies are sent from where they lie.
  ReplayBackend(Replay& replay, RequestLog& log) : replay_(replay), log_(log) {}

  bool InitializeBackend(const std::string&) override { return true; }
  bool IsBackendInitialized() const override { return true; }
  void FetchResponseFromBackend(const quiche::HttpHeaderBlock& request_headers,
                                const std::string& request_body,
                                RequestHandler* handler) override;
  void CloseBackendResponseStream(RequestHandler*) override {}
  // WebSockets then go to TCP, as they do with servers that speak plain HTTP/3.
  bool SupportsExtendedConnect() override { return false; }

 private:
  Replay& replay_;
  RequestLog& log_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_BACKEND_H_
