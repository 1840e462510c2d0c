// quiche's dispatcher, whose sessions take requests as large as the TCP side
// does, have the testbed's settings, and may log what their connections do.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_DISPATCHER_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_DISPATCHER_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "quiche/quic/core/connection_id_generator.h"
#include "quiche/quic/core/quic_connection_id.h"
#include "quiche/quic/core/quic_session.h"
#include "quiche/quic/core/quic_versions.h"
#include "quiche/quic/core/tls_chlo_extractor.h"
#include "quiche/quic/platform/api/quic_socket_address.h"
#include "quiche/quic/tools/quic_simple_dispatcher.h"
#include "replay_session.h"
#include "settings.h"

namespace eyelevel {

class ReplayDispatcher : public quic::QuicSimpleDispatcher {
 public:
  using QuicSimpleDispatcher::QuicSimpleDispatcher;

  // For all connections from now on.
  void SetUp(const Settings& settings) { settings_ = settings; }

 protected:
  std::unique_ptr<quic::QuicSession> CreateQuicSession(
      quic::QuicConnectionId connection_id,
      const quic::QuicSocketAddress& self_address,
      const quic::QuicSocketAddress& peer_address, absl::string_view alpn,
      const quic::ParsedQuicVersion& version,
      const quic::ParsedClientHello& parsed_chlo,
      quic::ConnectionIdGeneratorInterface& connection_id_generator) override;

 private:
  void KeepLog(ReplaySession& session);

  Settings settings_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_DISPATCHER_H_
