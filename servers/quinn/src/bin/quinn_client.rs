//! `quinn_client`: a bulk flow over QUIC version 1 and HTTP/3, which downloads one file again and again.

use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, Bytes};
use clap::Parser;
use h3::client::SendRequest;
use h3::error::Code;
use h3_quinn::OpenStreams;
use http::{Request, StatusCode, Uri};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// How many bytes a server may send on a stream, and on a connection; the same as Chromium's.
const STREAM_WINDOW: u32 = 6 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 15 * 1024 * 1024;
/// Long, so that a link which is off for a while does not end the flow.
const IDLE_TIMEOUT_MS: u32 = 120_000;
const COUNTED: Duration = Duration::from_millis(10);

/// Download a file again and again over one connection of QUIC version 1 and HTTP/3
///
/// Prints the number of bytes received so far, one number per line: 0 once it is connected, then, every 10 ms, the
/// number if it has changed. It downloads after the line "on" on its standard input, pauses after "off", and ends with
/// that input.
#[derive(Parser)]
#[command(name = "quinn_client", version)]
struct Arguments {
    /// Where the server is, whatever the URL says
    #[arg(long)]
    address: SocketAddr,

    /// The URL to download
    #[arg(long)]
    url: Uri,

    /// The certificate authority of the server, in PEM
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,

    /// How many requests are under way at once
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u8).range(1..))]
    outstanding: u8,
}

type Requests = SendRequest<OpenStreams, Bytes>;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn_client: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(arguments: Arguments) -> Result<()> {
    let host = arguments.url.host().context("the URL has no host")?;
    let any_port = if arguments.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = Endpoint::client(any_port.parse()?)?;
    endpoint.set_default_client_config(client_config(&arguments.ca)?);
    let connection = endpoint.connect(arguments.address, host)?.await.context("cannot connect")?;
    let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let got = Arc::new(AtomicU64::new(0));
    let (switch, is_on) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { Err(anyhow!("the connection ended: {}", driver.wait_idle().await)) });
    for _ in 0..arguments.outstanding {
        tasks.spawn(download(requests.clone(), arguments.url.clone(), is_on.clone(), got.clone()));
    }
    tasks.spawn(count(got));
    tasks.spawn(follow(switch));
    // Only the task that follows the input ends; the others run for ever.
    tasks.join_next().await.context("nothing runs")??
}

fn client_config(ca: &PathBuf) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(ca).with_context(|| format!("cannot read {}", ca.display()))?
    {
        roots.add(certificate?)?;
    }
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_TIMEOUT_MS).into()));
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Makes one request after another while it is on; when it goes off, the request under way is cancelled.
async fn download(
    mut requests: Requests,
    url: Uri,
    mut is_on: watch::Receiver<bool>,
    got: Arc<AtomicU64>,
) -> Result<()> {
    loop {
        is_on.wait_for(|on| *on).await?;
        let mut stream = requests.send_request(Request::get(url.clone()).body(())?).await?;
        stream.finish().await?;
        let response = stream.recv_response().await?;
        ensure!(response.status() == StatusCode::OK, "{url} is answered by {}", response.status());
        loop {
            tokio::select! {
                data = stream.recv_data() => match data? {
                    Some(data) => _ = got.fetch_add(data.remaining() as u64, Ordering::Relaxed),
                    None => break,
                },
                off = async { is_on.wait_for(|on| !*on).await.map(|_| ()) } => {
                    off?;
                    stream.stop_sending(Code::H3_REQUEST_CANCELLED);
                    break;
                }
            }
        }
    }
}

async fn count(got: Arc<AtomicU64>) -> Result<()> {
    let mut ticks = interval(COUNTED);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = None;
    loop {
        ticks.tick().await;
        let now = got.load(Ordering::Relaxed);
        if said != Some(now) {
            let mut out = stdout().lock();
            writeln!(out, "{now}")?;
            out.flush()?;
            said = Some(now);
        }
    }
}

async fn follow(switch: watch::Sender<bool>) -> Result<()> {
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "on" => switch.send(true)?,
            "off" => switch.send(false)?,
            _ => bail!("there is no command {line:?}"),
        }
    }
    Ok(())
}
