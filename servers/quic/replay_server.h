// quiche's QUIC server, set up for the testbed: one address, explicit numbers,
// a clean end.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_SERVER_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_SERVER_H_

#include <memory>

#include "absl/status/status.h"
#include "quiche/quic/core/crypto/proof_source.h"
#include "quiche/quic/core/io/socket.h"
#include "quiche/quic/core/quic_dispatcher.h"
#include "quiche/quic/platform/api/quic_ip_address.h"
#include "quiche/quic/platform/api/quic_socket_address.h"
#include "quiche/quic/tools/quic_server.h"
#include "quiche/quic/tools/quic_simple_server_backend.h"
#include "settings.h"

namespace eyelevel {

class ReplayServer : public quic::QuicServer {
 public:
  // `backend` must outlive the server.
  ReplayServer(std::unique_ptr<quic::ProofSource> certificate,
               quic::QuicSimpleServerBackend* backend,
               const Settings& settings);

  // Binds `address`, which no other socket may hold; port 0 takes a free one.
  // From here on SIGTERM and SIGINT wait for ServeUntilSignal.
  absl::Status Listen(const quic::QuicSocketAddress& address);

  // The address that was bound.
  quic::QuicSocketAddress address() {
    return quic::QuicSocketAddress(host_, port());
  }

  // Serves until SIGTERM or SIGINT, then closes the connections.
  void ServeUntilSignal();

 protected:
  quic::QuicPacketWriter* CreateWriter(int fd) override;
  quic::QuicDispatcher* CreateQuicDispatcher() override;

 private:
  const Settings settings_;
  quic::QuicIpAddress host_;
  quic::OwnedSocketFd signal_fd_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_SERVER_H_
