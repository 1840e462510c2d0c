// What the command line says of the server's connections.

#ifndef EYELEVEL_SERVERS_QUIC_SETTINGS_H_
#define EYELEVEL_SERVERS_QUIC_SETTINGS_H_

#include <cstdint>
#include <string>

#include "quiche/quic/core/quic_constants.h"
#include "scheduler.h"

namespace eyelevel {

struct Settings {
  // Of how many connections Cubic behaves as one.
  uint32_t emulated_connections = quic::kDefaultNumConnections;
  // The largest congestion window in quiche's segments, or 0 for its own.
  uint32_t max_window_packets = 0;
  Scheduler scheduler;
  uint16_t tls_group = 0;  // An SSL_GROUP_*, or 0 for all of BoringSSL's.
  std::string qlog;  // The folder to which connections are logged, or empty.
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SETTINGS_H_
