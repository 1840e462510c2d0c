#include "replay_dispatcher.h"

#include <cstddef>
#include <iostream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "connection_log.h"
#include "qlog_file.h"
#include "quiche/quic/core/quic_connection.h"

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
  auto session = std::make_unique<ReplaySession>(
      config(), GetSupportedVersions(), connection, this, session_helper(),
      crypto_config(), compressed_certs_cache(), server_backend());
  session->set_max_inbound_header_list_size(kMaxRequestHeaderBytes);
  session->SetEmulatedConnections(settings_.emulated_connections);
  session->SetScheduler(settings_.scheduler);
  if (!settings_.qlog.empty()) {
    KeepLog(*session);
  }
  session->Initialize();
  return session;
}

void ReplayDispatcher::KeepLog(ReplaySession& session) {
  const quic::QuicConnection& connection = *session.connection();
  absl::StatusOr<QlogFile> file = QlogFile::Create(absl::StrCat(
      settings_.qlog, "/quic-", connection.self_address().host().ToString(),
      "-", connection.connection_id().ToString(), ".sqlog"));
  if (!file.ok()) {
    // The page load goes on; whoever looks for the log does not find it.
    std::cerr << "quic_server: " << file.status().message() << std::endl;
    return;
  }
  session.KeepLog(std::make_unique<ConnectionLog>(
      connection, settings_.scheduler, *std::move(file)));
}

}  // namespace eyelevel
