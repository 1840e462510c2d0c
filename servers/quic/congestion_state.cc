#include "congestion_state.h"

#include <cmath>

#include "quiche/quic/core/congestion_control/bbr2_misc.h"
#include "quiche/quic/core/congestion_control/bbr2_sender.h"
#include "quiche/quic/core/congestion_control/bbr3_sender.h"
#include "quiche/quic/core/congestion_control/bbr_sender.h"
#include "quiche/quic/core/congestion_control/send_algorithm_interface.h"
#include "quiche/quic/core/congestion_control/tcp_cubic_sender_bytes.h"

namespace eyelevel {
namespace {

// quiche's; N connections keep (N - 1 + this) / N of their window after a loss.
constexpr double kBackoffOfOne = 0.7;

// Gives access to what Cubic shares with classes derived from it alone.
struct Cubic : quic::TcpCubicSenderBytes {
  static double Backoff(const quic::TcpCubicSenderBytes& cubic) {
    return (cubic.*&Cubic::RenoBeta)();
  }
};

bool IsCubic(const quic::SendAlgorithmInterface& controller) {
  return controller.GetCongestionControlType() == quic::kCubicBytes;
}

constexpr absl::string_view kProbeRtt = "probe_rtt";

absl::string_view Bbr1Mode(const quic::BbrSender& sender) {
  switch (sender.ExportDebugState().mode) {
    case quic::BbrSender::STARTUP:
      return "startup";
    case quic::BbrSender::DRAIN:
      return "drain";
    case quic::BbrSender::PROBE_BW:
      return "probe_bw";
    case quic::BbrSender::PROBE_RTT:
      return kProbeRtt;
  }
}

template <typename Sender>
absl::string_view Bbr2Mode(const Sender& sender) {
  switch (sender.ExportDebugState().mode) {
    case quic::Bbr2Mode::STARTUP:
      return "startup";
    case quic::Bbr2Mode::DRAIN:
      return "drain";
    case quic::Bbr2Mode::PROBE_BW:
      return "probe_bw";
    case quic::Bbr2Mode::PROBE_RTT:
      return kProbeRtt;
  }
}

absl::string_view Mode(const quic::SendAlgorithmInterface& controller) {
  switch (controller.GetCongestionControlType()) {
    case quic::kBBR:
      return Bbr1Mode(static_cast<const quic::BbrSender&>(controller));
    case quic::kBBRv2:
      return Bbr2Mode(static_cast<const quic::Bbr2Sender&>(controller));
    case quic::kBBRv3:
      return Bbr2Mode(static_cast<const quic::Bbr3Sender&>(controller));
    default:
      return controller.InSlowStart() ? "slow_start" : "congestion_avoidance";
  }
}

}  // namespace

absl::string_view ControllerName(quic::CongestionControlType type) {
  switch (type) {
    case quic::kCubicBytes:
      return "cubic";
    case quic::kRenoBytes:
      return "reno";
    case quic::kBBR:
      return "bbr";
    case quic::kPCC:
      return "pcc";
    case quic::kGoogCC:
      return "googcc";
    case quic::kBBRv2:
      return "bbr2";
    case quic::kBBRv3:
      return "bbr3";
    case quic::kPragueCubic:
      return "prague";
  }
}

void SetCubicConnections(quic::QuicSentPacketManager& manager,
                         uint32_t number) {
  // The manager hands out its controller as const, and has no other way to this
  // number.
  auto& controller =
      const_cast<quic::SendAlgorithmInterface&>(*manager.GetSendAlgorithm());
  if (IsCubic(controller)) {
    static_cast<quic::TcpCubicSenderBytes&>(controller)
        .SetNumEmulatedConnections(static_cast<int>(number));
  }
}

std::optional<uint32_t> CubicConnections(
    const quic::QuicSentPacketManager& manager) {
  const quic::SendAlgorithmInterface& controller = *manager.GetSendAlgorithm();
  if (!IsCubic(controller)) {
    return std::nullopt;
  }
  const double backoff =
      Cubic::Backoff(static_cast<const quic::TcpCubicSenderBytes&>(controller));
  return static_cast<uint32_t>(
      std::lround((1 - kBackoffOfOne) / (1 - backoff)));
}

absl::string_view CongestionState(const quic::QuicSentPacketManager& manager,
                                  bool application_limited) {
  const quic::SendAlgorithmInterface& controller = *manager.GetSendAlgorithm();
  if (manager.GetConsecutivePtoCount() > 0) {
    return "pto";
  }
  if (controller.InRecovery()) {
    return "recovery";
  }
  const absl::string_view mode = Mode(controller);
  return application_limited && mode != kProbeRtt ? "application_limited"
                                                  : mode;
}

}  // namespace eyelevel
