// On which addresses quic_server serves, and with which certificates.

#ifndef EYELEVEL_SERVERS_QUIC_ENDPOINTS_H_
#define EYELEVEL_SERVERS_QUIC_ENDPOINTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "quiche/quic/platform/api/quic_socket_address.h"

namespace eyelevel {

struct Endpoint {
  quic::QuicSocketAddress address;
  std::string certificate;  // The PEM file of the chain.
  std::string key;          // That of the private key.
};

// Reads a file with one endpoint a line, ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>
// KEY; there is at least one. The error names the file, the line and the fault.
absl::StatusOr<std::vector<Endpoint>> LoadEndpoints(const std::string& path);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_ENDPOINTS_H_
