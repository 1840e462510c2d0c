#include "replay_server.h"

#include <sys/signalfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quiche/quic/core/crypto/quic_crypto_server_config.h"
#include "quiche/quic/core/io/quic_event_loop.h"
#include "quiche/quic/core/quic_config.h"
#include "quiche/quic/core/quic_connection_id.h"
#include "quiche/quic/core/quic_constants.h"
#include "quiche/quic/core/quic_default_connection_helper.h"
#include "quiche/quic/core/quic_time.h"
#include "quiche/quic/core/quic_versions.h"
#include "quiche/quic/platform/api/quic_flags.h"
#include "quiche/quic/tools/quic_simple_crypto_server_stream_helper.h"
#include "replay_dispatcher.h"

namespace eyelevel {
namespace {

// The transport's numbers, in one place so that none follows a default of
// whichever version this is built from.

// The windows that a request's body may fill before the server has read it.
// Responses are bounded by the browser's windows (6 MiB a stream, 15 MiB a
// connection in Chromium). quiche's QuicServer has the same two numbers; both
// windows grow by themselves when an upload needs it.
constexpr uint32_t kStreamWindowBytes = 64 * 1024;
constexpr uint32_t kConnectionWindowBytes = 1024 * 1024;

// As NGINX's http2_max_concurrent_streams on the TCP side.
constexpr uint32_t kMaxRequestStreams = 100;

// As NGINX's keepalive_timeout on the TCP side: the browser's own timer, 30 s
// in Chromium, always comes first.
constexpr auto kIdleTimeout = quic::QuicTime::Delta::FromSeconds(600);

// Linux's default limit (net.core.rmem_max and wmem_max): the most that every
// machine grants without privileges. Room for some 180 packets: with
// more to send a connection waits instead of overrunning the device.
constexpr int kSocketBufferBytes = 212992;

quic::QuicConfig Config() {
  quic::QuicConfig config;
  config.SetInitialStreamFlowControlWindowToSend(kStreamWindowBytes);
  config.SetInitialSessionFlowControlWindowToSend(kConnectionWindowBytes);
  config.SetMaxBidirectionalStreamsToSend(kMaxRequestStreams);
  config.SetIdleNetworkTimeout(kIdleTimeout);
  return config;
}

// The defaults for a client that asks for nothing: Cubic, paced, from 32
// packets. A client asks by connection options, such as TBBR, B2ON, BYTE, IW10,
// IW20.
void SetCongestionControlDefaults() {
  SetQuicReloadableFlag(quic_default_to_bbr, false);
  SetQuicReloadableFlag(quic_default_to_bbr_v2, false);
  SetQuicFlag(quic_disable_pacing_for_perf_tests, false);
  static_assert(quic::kInitialCongestionWindow == 32);
}

// Notes that a signal has come in.
class SignalListener : public quic::QuicSocketEventListener {
 public:
  void OnSocketEvent(quic::QuicEventLoop*, quic::SocketFd,
                     quic::QuicSocketEventMask) override {
    signalled_ = true;
  }
  bool signalled() const { return signalled_; }

 private:
  bool signalled_ = false;
};

// Whether `address` is free. quiche's own error for one that is not does not
// say why.
absl::Status CheckFree(const quic::QuicSocketAddress& address) {
  const int family = address.host().AddressFamilyToInt();
  const quic::OwnedSocketFd fd(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_storage generic = address.generic_address();
  if (fd.valid() && bind(*fd, reinterpret_cast<const sockaddr*>(&generic),
                         sizeof generic) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", address.ToString(), ": ", std::strerror(errno)));
}

}  // namespace

ReplayServer::ReplayServer(std::unique_ptr<quic::ProofSource> certificate,
                           quic::QuicSimpleServerBackend* backend,
                           const Settings& settings)
    : QuicServer(std::move(certificate), /*proof_verifier=*/nullptr, Config(),
                 quic::QuicCryptoServerConfig::ConfigOptions(),
                 {quic::ParsedQuicVersion::RFCv1()}, backend,
                 quic::kQuicDefaultConnectionIdLength),
      settings_(settings) {
  SetCongestionControlDefaults();
  if (settings_.max_window_packets != 0) {
    SetQuicFlag(quic_max_congestion_window, settings_.max_window_packets);
  }
  settings_.scheduler.SetUpQuiche();
  if (settings_.tls_group != 0) {
    // QuicServer lets only this constructor's arguments into its own config,
    // and a group is not among them.
    const_cast<quic::QuicCryptoServerConfig&>(crypto_config())
        .set_preferred_groups({settings_.tls_group});
  }
}

absl::Status ReplayServer::Listen(const quic::QuicSocketAddress& address) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ =
      quic::OwnedSocketFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));

  host_ = address.host();
  if (absl::Status free = CheckFree(address); !free.ok()) {
    return free;
  }
  if (!CreateUDPSocketAndListen(address)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString()));
  }
  return absl::OkStatus();
}

quic::QuicPacketWriter* ReplayServer::CreateWriter(int fd) {
  // No other step in making the socket can be overridden; an earlier one has
  // set other sizes.
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBufferBytes,
             sizeof kSocketBufferBytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes,
             sizeof kSocketBufferBytes);
  // One system call per packet: at 25 Mbit/s over a TUN device 2 % of a core.
  // quiche's sendmmsg writer saves a sixth of that, its segmentation offload
  // half, but that fails on kernels before 6.11, where such a device refuses
  // segments without a checksum offload.
  return QuicServer::CreateWriter(fd);
}

// As QuicServer makes it, but for its class.
quic::QuicDispatcher* ReplayServer::CreateQuicDispatcher() {
  auto* const dispatcher = new ReplayDispatcher(  // The server's.
      &config(), &crypto_config(), version_manager(),
      std::make_unique<quic::QuicDefaultConnectionHelper>(),
      std::make_unique<quic::QuicSimpleCryptoServerStreamHelper>(),
      event_loop()->CreateAlarmFactory(), server_backend(),
      expected_server_connection_id_length(), connection_id_generator());
  dispatcher->SetUp(settings_);
  return dispatcher;
}

void ReplayServer::ServeUntilSignal() {
  SignalListener listener;
  const bool registered = event_loop()->RegisterSocket(
      *signal_fd_, quic::kSocketEventReadable, &listener);
  QUICHE_CHECK(registered)
      << "no other listener can hold the signal descriptor";
  while (!listener.signalled()) {
    event_loop()->RunEventLoopOnce(kIdleTimeout);
  }
  Shutdown();
}

}  // namespace eyelevel
