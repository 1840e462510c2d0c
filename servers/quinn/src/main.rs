//! `quinn_server`: replays recorded responses over QUIC version 1 and HTTP/3, with quinn and h3.

mod endpoints;
mod fit;
mod match_lines;
mod matcher;
mod replay;
mod request_log;
mod responses;
mod server;

use std::io::{Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use eyelevel_quinn_server::{bounded, congestion, connection_log};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::congestion::CongestionControl;
use crate::replay::Replay;
use crate::request_log::RequestLog;
use crate::server::{Server, Settings, Site, TlsGroup};

/// How long to wait, at most, until all connections have ended.
const CLOSING: Duration = Duration::from_millis(200);

/// Replay recorded responses over QUIC version 1 and HTTP/3, on many addresses
///
/// Prints a line for each address when it can serve there. Ends on SIGTERM and SIGINT.
#[derive(Parser)]
#[command(name = "quinn_server", version)]
struct Arguments {
    /// Where to serve, a line ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>KEY for each endpoint: an IP address and a UDP port
    /// that no other socket may hold (port 0 takes a free one), and PEM files of the certificate chain, the server's
    /// own certificate first, and of its private key
    #[arg(long, value_name = "FILE", required_unless_present = "matches")]
    endpoints: Option<PathBuf>,

    /// Responses as DIR/<host>/<file>: status line, headers (among them X-Original-Url and X-Original-Method), blank
    /// line, body; the file names show the recorded order
    #[arg(long, value_name = "DIR")]
    responses: PathBuf,

    #[arg(long, value_enum, default_value = "cubic")]
    congestion_control: CongestionControl,

    /// The congestion window at the beginning, in bytes
    #[arg(long, value_name = "BYTES", default_value = "46720", value_parser = clap::value_parser!(u64).range(2500..=1 << 24))]
    initial_window: u64,

    /// The only group for the key exchange
    #[arg(long, value_enum, default_value = "X25519")]
    tls_group: TlsGroup,

    /// Let a client that returns send requests with its handshake (0-RTT)
    #[arg(long)]
    early_data: bool,

    /// Append a line per request: kind, method, URL, file, separated by tabs
    #[arg(long, value_name = "FILE")]
    request_log: Option<PathBuf>,

    /// Log the congestion control of each connection to DIR/quic-*.sqlog
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,

    /// Send each response as long after its request as when it was recorded
    #[arg(long)]
    think_time: bool,

    /// Serve nothing; for every line METHOD<TAB>URL[<TAB>ORIGIN<TAB>REQUESTED-METHOD<TAB>REQUESTED-HEADERS<TAB>RANGE<TAB>
    /// IF-NONE-MATCH<TAB>IF-MODIFIED-SINCE] on standard input, print the answer in the form of quic_server
    #[arg(long = "match")]
    matches: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn_server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let responses = responses::load(&arguments.responses)?;
    let Some(endpoints) = arguments.endpoints.filter(|_| !arguments.matches) else {
        return match_lines::answer(stdin().lock(), &Replay::new(responses), stdout().lock());
    };
    let endpoints = endpoints::load(&endpoints)?;
    if let Some(folder) = &arguments.qlog {
        ensure!(folder.is_dir(), "cannot write qlogs to {}: it is no folder", folder.display());
    }
    let site = Arc::new(Site {
        replay: Replay::new(responses),
        log: RequestLog::open(arguments.request_log.as_deref())?,
        settings: Settings {
            control: arguments.congestion_control,
            initial_window: arguments.initial_window,
            tls_group: arguments.tls_group,
            early_data: arguments.early_data,
            think_time: arguments.think_time,
            qlog: arguments.qlog,
        },
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?;
    let outcome = runtime.block_on(serve(&endpoints, &site));
    runtime.shutdown_background();
    outcome
}

async fn serve(endpoints: &[endpoints::Endpoint], site: &Arc<Site>) -> Result<()> {
    // Watch for signals before the first address is announced, so that no signal is missed.
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let servers = endpoints.iter().map(|endpoint| Server::bind(endpoint, site.clone()));
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let (alive, mut all_closed) = mpsc::channel(1);
    let servers: Vec<_> = servers.into_iter().map(Arc::new).collect();
    let mut output = stdout().lock();
    for server in &servers {
        let (serving, alive) = (server.clone(), alive.clone());
        tokio::spawn(async move { serving.serve(alive).await });
        writeln!(output, "listening on {}", server.address).context("cannot write to the standard output")?;
    }
    output.flush()?;
    drop((output, alive));
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    servers.iter().for_each(|server| server.close());
    let _ = timeout(CLOSING, all_closed.recv()).await;
    let idle = async {
        for server in &servers {
            server.wait_idle().await;
        }
    };
    let _ = timeout(CLOSING, idle).await;
    Ok(())
}
