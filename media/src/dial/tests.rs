//! Tests of the TCP dialer on the loopback interface, in real time.

use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::os::fd::AsFd;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use socket2::{Domain, Socket as RawSocket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::error::{Scope, Side};

const LONG: Duration = Duration::from_secs(20);

/// A check that accepts every address.
const ANYWHERE: fn(SocketAddr) -> Result<(), String> = |_| Ok(());

fn dialer() -> TcpDial {
    TcpDial::new(DialSettings::default()).unwrap()
}

fn address(secure: bool, host: &str, port: u16) -> DialAddress {
    DialAddress { secure, host: host.into(), port }
}

async fn cause(dial: &TcpDial, address: &DialAddress, limit: Duration) -> Cause {
    dial.dial(address, &ANYWHERE, limit).await.err().expect("should not connect").cause().clone()
}

/// Returns a loopback port without a listener.
fn dead_port() -> u16 {
    StdListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the address of a listener that does not accept because its queue is full, and the sockets that
/// keep it so.
fn blackhole() -> (SocketAddr, Vec<RawSocket>) {
    let listener = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut sockets = vec![listener];
    for _ in 0..8 {
        let filler = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        filler.set_nonblocking(true).unwrap();
        // A connection attempt in progress is enough to fill the queue.
        let _ = filler.connect(&address);
        sockets.push(filler);
    }
    (address.as_socket().unwrap(), sockets)
}

// Seen in operation: two connections at the same time on an account that allows one, for some milliseconds,
// at a provider that closes only on a reset. A program for another channel was being started and held a copy
// of every socket until its exec. The first socket was closed and its slot reused while the connection was
// still open.
#[tokio::test]
async fn a_dropped_socket_is_reset_although_a_starting_program_holds_a_copy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut provider, _) = listener.accept().await.unwrap();
    let copy = stream.as_fd().try_clone_to_owned().unwrap();
    drop(ResetOnDrop::new(stream).unwrap());
    let read = timeout(LONG, provider.read_u8()).await.expect("the provider notices the reset");
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    drop(copy);
}

#[tokio::test]
async fn a_refused_connection_and_an_unknown_name_are_reported_at_once() {
    let dial = dialer();
    let refused = cause(&dial, &address(false, "127.0.0.1", dead_port()), LONG).await;
    assert_eq!(refused, Cause::Connect("connection refused".into()));
    let unknown = cause(&dial, &address(false, "no-such-host.invalid", 80), LONG).await;
    assert_eq!(unknown, Cause::Dns);
}

#[tokio::test]
async fn an_unreachable_address_takes_no_longer_than_the_timeout() {
    let (dead, _sockets) = blackhole();
    let began = Instant::now();
    let limit = Duration::from_millis(300);
    let found = cause(&dialer(), &address(false, "127.0.0.1", dead.port()), limit).await;
    assert_eq!(found, Cause::ConnectTimeout);
    assert!(began.elapsed() >= limit);
}

#[tokio::test]
async fn an_unreachable_address_leaves_time_for_the_next_one() {
    let (dead, _sockets) = blackhole();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let alive = listener.local_addr().unwrap();
    let began = Instant::now();
    let limit = Duration::from_secs(3);
    let name = address(false, "two-addresses", 80);
    let dial = dialer();
    let dialled = dial.connect_in_turn(&name, &[dead, alive], began + limit).await;
    assert!(dialled.is_ok());
    // The first address uses its share of the time: the two are never tried at the same time.
    assert!(began.elapsed() >= SHARE_MIN);
    assert!(listener.accept().await.is_ok());

    // More time is left to the last address and does not prolong the attempt at the first one.
    let addresses = [dead, alive];
    let dialled = dial.connect_in_turn(&name, &addresses, Instant::now() + 4 * LONG);
    assert!(timeout(LONG, dialled).await.is_ok_and(|it| it.is_ok()));

    // A refused connection costs no time.
    let refuses = SocketAddr::from((Ipv4Addr::LOCALHOST, dead_port()));
    assert!(dial.connect_in_turn(&name, &[refuses, alive], Instant::now() + LONG).await.is_ok());
}

#[tokio::test]
async fn a_dropped_socket_is_reset_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = dialer().dial(&address(false, "127.0.0.1", port), &ANYWHERE, LONG).await.unwrap();
    let (mut theirs, _) = listener.accept().await.unwrap();
    // Unread bytes on the local side, and more in flight.
    theirs.write_all(&[0x47; 10_000]).await.unwrap();
    drop(socket);
    let error = theirs.read(&mut [0; 16]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn no_address_gets_less_than_a_second_and_none_keeps_the_others_from_their_turn() {
    let ms = Duration::from_millis;
    /// Returns the time that each address gets if none answers.
    fn shares(limit: Duration, n: usize) -> Vec<Duration> {
        let mut left = limit;
        let shares = (0..n).map_while(|index| {
            let it = share(left, n - index, index == 0)?;
            left -= it;
            Some(it)
        });
        shares.collect()
    }
    assert_eq!(shares(ms(3000), 1), [ms(3000)]);
    assert_eq!(shares(ms(3000), 2), [ms(1500), ms(1500)]);
    assert_eq!(shares(ms(3000), 3), [ms(1000); 3]);
    assert_eq!(shares(ms(3000), 8), [ms(1000); 3], "the others are tried next time");
    assert_eq!(shares(ms(2900), 8), [ms(1000), ms(1900)]);
    assert_eq!(shares(ms(15_000), 3), [ms(1500), ms(1500), ms(12_000)]);
    assert_eq!(shares(ms(300), 2), [ms(300)], "shorter than a second by configuration");
    for limit in (100..20_000).step_by(77) {
        for n in 1..20 {
            let shares = shares(ms(limit), n);
            assert!(shares.iter().all(|it| *it >= SHARE_MIN.min(ms(limit))), "{limit} {n}: {shares:?}");
            assert!(shares.iter().sum::<Duration>() <= ms(limit), "{limit} {n}: {shares:?}");
        }
    }
}

/// Returns a dialer whose resolver knows only these addresses.
fn dialer_for(addresses: Vec<SocketAddr>) -> TcpDial {
    TcpDial { names: Arc::new(Names::new(Arc::new(move |_, _| Ok(addresses.clone())))), ..dialer() }
}

// Seen in operation: a provider with an IPv6 address that is out of reach cost 1.5 s at every zap.
#[tokio::test]
async fn the_address_that_worked_last_is_tried_first() {
    let refuses = SocketAddr::from((Ipv4Addr::LOCALHOST, dead_port()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = address(false, "two-addresses", 80);
    let dial = dialer_for(vec![refuses, listener.local_addr().unwrap()]);
    dial.dial(&name, &ANYWHERE, LONG).await.unwrap();
    listener.accept().await.unwrap();
    // From now on the first address would answer as well.
    let first = TcpListener::bind(refuses).await.unwrap();
    dial.dial(&name, &ANYWHERE, LONG).await.unwrap();
    timeout(LONG, listener.accept()).await.expect("the second address is tried first").unwrap();
    drop(listener);
    dial.dial(&name, &ANYWHERE, LONG).await.unwrap();
    timeout(LONG, first.accept()).await.expect("the other address is tried as well").unwrap();
}

// Part of T-acc.5: what counts is where a name leads at the moment of the connection.
#[tokio::test]
async fn only_addresses_that_pass_the_check_are_connected_to_whatever_their_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = listener.local_addr().unwrap();
    let check = |to: SocketAddr| if to == near { Err("too near".to_owned()) } else { Ok(()) };
    let forbidden = |dialled: Result<Dialled, UpstreamError>| dialled.err().unwrap().cause().clone();
    let expected = Cause::Forbidden("too near".to_owned());
    for host in ["127.0.0.1", "localhost"] {
        let dialled = dialer_for(vec![near]).dial(&address(false, host, near.port()), &check, LONG).await;
        assert_eq!(forbidden(dialled), expected, "{host}");
    }
    // The name leads to both: only the allowed address is tried.
    let other = StdListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    let elsewhere = other.local_addr().unwrap();
    let dialled = dialer_for(vec![near, elsewhere]).dial(&address(false, "both", 80), &check, LONG).await;
    assert_eq!(dialled.unwrap().peer, Some(elsewhere));
    // A name that led elsewhere before, and to this machine now.
    let now = Arc::new(parking_lot::Mutex::new(elsewhere));
    let names = now.clone();
    let dial =
        TcpDial { names: Arc::new(Names::new(Arc::new(move |_, _| Ok(vec![*names.lock()])))), ..dialer() };
    let name = address(false, "moves", near.port());
    assert_eq!(dial.dial(&name, &check, LONG).await.unwrap().peer, Some(elsewhere));
    *now.lock() = near;
    assert_eq!(forbidden(dial.dial(&name, &check, LONG).await), expected);
    let accepted = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(accepted.is_err(), "nobody connected to the near address");
}

#[tokio::test]
async fn addresses_that_there_was_no_time_for_are_tried_next_time() {
    let (dead, _sockets) = blackhole();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = address(false, "three-addresses", 80);
    let dial = dialer_for(vec![dead, dead, listener.local_addr().unwrap()]);
    let limit = Duration::from_millis(2100);
    assert_eq!(cause(&dial, &name, limit).await, Cause::ConnectTimeout);
    dial.dial(&name, &ANYWHERE, limit).await.unwrap();
}

/// Starts a TLS server for `localhost` that sends "hello".
async fn tls_server() -> u16 {
    let certificate = CertificateDer::from(include_bytes!("testdata/server.der").to_vec());
    let key = PrivateKeyDer::try_from(include_bytes!("testdata/server.key.der").to_vec()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.write_all(b"hello").await;
                let _ = stream.shutdown().await;
            }
        }
    });
    port
}

#[tokio::test]
async fn an_untrusted_certificate_is_an_upstream_error_without_retry() {
    let port = tls_server().await;
    let error = dialer().dial(&address(true, "localhost", port), &ANYWHERE, LONG).await.err().unwrap();
    assert!(matches!(error.cause(), Cause::Certificate(_)), "{error}");
    assert_eq!((error.side(), error.scope(), error.can_retry()), (Side::Upstream, Scope::Stream, false));
}

#[tokio::test]
async fn an_additional_authority_is_trusted_for_the_names_in_its_certificates() {
    let port = tls_server().await;
    let authority = CertificateDer::from(include_bytes!("testdata/authority.der").to_vec());
    let dial = TcpDial::new(DialSettings { authorities: vec![authority] }).unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let mut socket = dial.dial(&address(true, host, port), &ANYWHERE, LONG).await.unwrap().socket;
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
    }
    let name = address(true, "other-name", port);
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    let error = dial.connect_in_turn(&name, &addresses, Instant::now() + LONG).await.err().unwrap();
    assert!(matches!(error.cause(), Cause::Certificate(_)), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_causes_an_error_or_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut plain, _) = listener.accept().await.unwrap();
        let _ = plain.read(&mut [0; 16]).await;
        let _ = plain.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // A second connection to which the server sends nothing.
        let (silent, _) = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
        drop(silent);
    });
    let dial = dialer();
    let target = address(true, "127.0.0.1", port);
    assert!(matches!(cause(&dial, &target, LONG).await, Cause::Tls(_)));
    assert_eq!(cause(&dial, &target, Duration::from_millis(300)).await, Cause::ConnectTimeout);
    server.abort();
}
