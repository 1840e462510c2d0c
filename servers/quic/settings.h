// The settings of the server's connections, from the command line.

#ifndef EYELEVEL_SERVERS_QUIC_SETTINGS_H_
#define EYELEVEL_SERVERS_QUIC_SETTINGS_H_

#include <cstdint>
#include <string>

#include "quiche/quic/core/quic_constants.h"
#include "scheduler.h"

namespace eyelevel {

struct Settings {
  // The number of connections as which Cubic behaves.
  uint32_t emulated_connections = quic::kDefaultNumConnections;
  // The largest congestion window in quiche's segments, or 0 for its own.
  uint32_t max_window_packets = 0;
  Scheduler scheduler;
  uint16_t tls_group = 0;  // An SSL_GROUP_*, or 0 for all of BoringSSL's.
  std::string qlog;  // The folder to which connections are logged, or empty.
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SETTINGS_H_
