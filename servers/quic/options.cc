#include "options.h"

#include <getopt.h>

#include <cstdint>
#include <iostream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "openssl/ssl.h"

namespace eyelevel {
namespace {

constexpr int kBadUsage = 2;

constexpr uint32_t kMaxEmulatedConnections = 10;

// As much of quiche's packets as any window of the kernel's TCP may have bytes.
constexpr uint32_t kMaxWindowPackets = 100'000;

// By the names that OpenSSL has for them.
std::optional<uint16_t> TlsGroup(absl::string_view name) {
  if (name == "X25519") {
    return SSL_GROUP_X25519;
  }
  if (name == "P-256") {
    return SSL_GROUP_SECP256R1;
  }
  if (name == "P-384") {
    return SSL_GROUP_SECP384R1;
  }
  return std::nullopt;
}

constexpr char kHelp[] =
    R"(Usage: quic_server --endpoints FILE --responses DIR
                   [--emulated-connections N] [--max-window PACKETS] [--scheduler NAME]
                   [--tls-group NAME] [--request-log FILE] [--qlog DIR] [--think-time]
       quic_server --responses DIR --match

Replays recorded responses over QUIC version 1 and HTTP/3, on each address by a process of its own.

  --endpoints FILE    where to serve, a line ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>KEY for each: an IP address
                      and UDP port that no other socket may hold (port 0 takes a free one), and PEM files of
                      the certificate chain, the server's own first, and its private key
  --responses DIR     responses as DIR/<host>/<file>: status line, headers (among them X-Original-Url and
                      X-Original-Method), blank line, body; the file names tell the recorded order
  --emulated-connections N
                      of how many connections Cubic behaves as one, 1 to 10 (2, quiche's own, if none is given);
                      after a loss it keeps (N - 0.3) / N of its window
  --max-window PACKETS
                      the largest congestion window, in packets of 1460 bytes (2000, quiche's own, if none is
                      given)
  --scheduler NAME    which stream is sent next, by the priorities that the browser asks for (RFC 9218):
                        urgency              the most urgent; of one urgency all take turns of 16 kB (quiche's
                                             own, if none is given)
                        urgency-incremental  the most urgent; of one urgency those that are incremental take
                                             turns, others go one after another
                        urgency-first-come   the most urgent; of one urgency one after another
                        fair                 all take turns
                        first-come           all one after another
  --tls-group NAME    the only group for the key exchange: X25519, P-256, P-384; else the browser's choice
  --request-log FILE  append a line per request: kind, method, URL, file, separated by tabs
  --qlog DIR          write what the congestion control of each connection does to DIR/quic-*.sqlog
  --think-time        send each response as long after its request as when it was recorded
  --match             serve nothing; for every line METHOD<TAB>URL[<TAB>ORIGIN<TAB>REQUESTED-METHOD
                      <TAB>REQUESTED-HEADERS<TAB>RANGE<TAB>IF-NONE-MATCH<TAB>IF-MODIFIED-SINCE] on
                      standard input say what the answer would be
  --version           say which Chromium's QUIC code this is
  --help              this text

Prints a line for each address when it can serve there. Ends on SIGTERM and SIGINT, and when one of its
processes does. The congestion control is the client's choice (connection options TBBR, B2ON, BYTE,
IW10, ...); without one it is paced Cubic from 32 packets.
)";

int BadUsage(absl::string_view message) {
  return Fail(kBadUsage, absl::StrCat(message, "; see --help"));
}

}  // namespace

std::variant<Options, int> ParseCommandLine(int argc, char** argv) {
  static constexpr option kOptions[] = {
      {"endpoints", required_argument, nullptr, 'a'},
      {"responses", required_argument, nullptr, 'r'},
      {"emulated-connections", required_argument, nullptr, 'e'},
      {"max-window", required_argument, nullptr, 'w'},
      {"scheduler", required_argument, nullptr, 's'},
      {"tls-group", required_argument, nullptr, 'g'},
      {"think-time", no_argument, nullptr, 't'},
      {"match", no_argument, nullptr, 'm'},
      {"request-log", required_argument, nullptr, 'l'},
      {"qlog", required_argument, nullptr, 'q'},
      {"version", no_argument, nullptr, 'v'},
      {"help", no_argument, nullptr, 'h'},
      {},
  };
  Options options;
  std::optional<std::string> emulated_connections, max_window, scheduler,
      tls_group;
  for (int code;
       (code = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (code) {
      case 'a':
        options.endpoints = optarg;
        break;
      case 'r':
        options.responses = optarg;
        break;
      case 'l':
        options.request_log = optarg;
        break;
      case 'q':
        options.settings.qlog = optarg;
        break;
      case 'e':
        emulated_connections = optarg;
        break;
      case 'w':
        max_window = optarg;
        break;
      case 's':
        scheduler = optarg;
        break;
      case 'g':
        tls_group = optarg;
        break;
      case 't':
        options.think_time = true;
        break;
      case 'm':
        options.match = true;
        break;
      case 'v':
        std::cout << "quic_server (Eyelevel) Chromium " CHROMIUM_VERSION
                  << std::endl;
        return 0;
      case 'h':
        std::cout << kHelp << std::flush;
        return 0;
      default:  // getopt_long has said why.
        return kBadUsage;
    }
  }
  if (optind < argc) {
    return BadUsage(absl::StrCat("unexpected argument ", argv[optind]));
  }
  Settings& settings = options.settings;
  if (emulated_connections &&
      (!absl::SimpleAtoi(*emulated_connections,
                         &settings.emulated_connections) ||
       settings.emulated_connections < 1 ||
       settings.emulated_connections > kMaxEmulatedConnections)) {
    return BadUsage(absl::StrCat("--emulated-connections must be from 1 to ",
                                 kMaxEmulatedConnections, ", not '",
                                 *emulated_connections, "'"));
  }
  if (max_window &&
      (!absl::SimpleAtoi(*max_window, &settings.max_window_packets) ||
       settings.max_window_packets < 1 ||
       settings.max_window_packets > kMaxWindowPackets)) {
    return BadUsage(absl::StrCat("--max-window must be from 1 to ",
                                 kMaxWindowPackets, ", not '", *max_window,
                                 "'"));
  }
  if (scheduler) {
    const std::optional<Scheduler> named = Scheduler::Named(*scheduler);
    if (!named) {
      return BadUsage(absl::StrCat("--scheduler must be one of ",
                                   Scheduler::Names(), ", not '", *scheduler,
                                   "'"));
    }
    settings.scheduler = *named;
  }
  if (tls_group) {
    const std::optional<uint16_t> group = TlsGroup(*tls_group);
    if (!group) {
      return BadUsage(
          absl::StrCat("--tls-group must be one of X25519, P-256, P-384, not '",
                       *tls_group, "'"));
    }
    settings.tls_group = *group;
  }
  if (options.responses.empty()) {
    return BadUsage("--responses is missing");
  }
  if (options.endpoints.empty() && !options.match) {
    return BadUsage("--endpoints is missing");
  }
  return options;
}

int Fail(int status, absl::string_view message) {
  std::cerr << "quic_server: " << message << std::endl;
  return status;
}

}  // namespace eyelevel
