#include "replay_dispatcher.h"

#include <cstddef>

#include "quiche/quic/core/quic_connection.h"
#include "quiche/quic/tools/quic_simple_server_session.h"

namespace eyelevel {
namespace {

// As one of NGINX's large_client_header_buffers on the TCP side; quiche's own
// 16 KiB are fewer than the URLs of some advertisements have.
constexpr size_t kMaxRequestHeaderBytes = 128 * 1024;

}  // namespace

// As QuicSimpleDispatcher makes it, but for that limit, which must be set
// before a session is initialized.
std::unique_ptr<quic::QuicSession> ReplayDispatcher::CreateQuicSession(
    quic::QuicConnectionId connection_id,
    const quic::QuicSocketAddress& self_address,
    const quic::QuicSocketAddress& peer_address, absl::string_view /*alpn*/,
    const quic::ParsedQuicVersion& version,
    const quic::ParsedClientHello& /*parsed_chlo*/,
    quic::ConnectionIdGeneratorInterface& connection_id_generator) {
  auto* const connection = new quic::QuicConnection(  // The session's.
      connection_id, self_address, peer_address, helper(), alarm_factory(),
      writer(), /*owns_writer=*/false, quic::Perspective::IS_SERVER,
      quic::ParsedQuicVersionVector{version}, connection_id_generator);
  auto session = std::make_unique<quic::QuicSimpleServerSession>(
      config(), GetSupportedVersions(), connection, this, session_helper(),
      crypto_config(), compressed_certs_cache(), server_backend());
  session->set_max_inbound_header_list_size(kMaxRequestHeaderBytes);
  session->Initialize();
  return session;
}

}  // namespace eyelevel
