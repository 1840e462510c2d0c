// One line per request: kind, method, URL, file of the response, separated by
// tabs.

#ifndef EYELEVEL_SERVERS_QUIC_REQUEST_LOG_H_
#define EYELEVEL_SERVERS_QUIC_REQUEST_LOG_H_

#include <string>

#include "absl/status/statusor.h"
#include "replay.h"

namespace eyelevel {

// Appends to a file that other servers may be appending to as well.
class RequestLog {
 public:
  // A log that keeps nothing.
  RequestLog() = default;

  static absl::StatusOr<RequestLog> Open(const std::string& path);

  RequestLog(RequestLog&& other);
  RequestLog& operator=(RequestLog&& other);
  ~RequestLog();

  void Add(const Request& request, const Answer& answer);

 private:
  explicit RequestLog(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REQUEST_LOG_H_
