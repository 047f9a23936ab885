use std::net::Ipv6Addr;

use parking_lot::Mutex;
use tokio::io::{DuplexStream, duplex};
use tokio::time::timeout;

use super::*;

fn address(secure: bool, host: &str, port: u16) -> DialAddress {
    DialAddress { secure, host: host.to_owned(), port }
}

fn proxy(protocol: ProxyProtocol, login: Option<(&str, &str)>) -> Arc<Proxy> {
    let login = login.map(|it| (it.0.to_owned(), it.1.to_owned()));
    Arc::new(Proxy { protocol, host: "proxy".to_owned(), port: 3128, login })
}

/// A proxy in memory: answers as a script says, and records what it gets.
#[derive(Default)]
struct Script {
    dialled: Mutex<Vec<DialAddress>>,
    secured: Mutex<Vec<String>>,
    server: Mutex<Option<DuplexStream>>,
    failure: Option<Cause>,
}

impl Dial for Script {
    fn dial<'a>(&'a self, to: &'a DialAddress, check: &'a AddressCheck<'a>, _: Duration) -> DialFuture<'a> {
        assert_eq!(check("127.0.0.1:1".parse().unwrap()), Ok(()));
        self.dialled.lock().push(to.clone());
        Box::pin(async {
            if let Some(cause) = &self.failure {
                return Err(cause.clone().into());
            }
            let (client, server) = duplex(1 << 10);
            *self.server.lock() = Some(server);
            Ok(Dialled { socket: Box::new(client), peer: None })
        })
    }

    fn resolve<'a>(&'a self, _: &'a DialAddress, _: Duration) -> ResolveFuture<'a> {
        panic!("a name is resolved here")
    }

    fn secure<'a>(&'a self, socket: BoxedSocket, host: &'a str) -> SecureFuture<'a> {
        self.secured.lock().push(host.to_owned());
        Box::pin(async { Ok(socket) })
    }
}

/// Dials `to` through a proxy that expects and sends these bytes in turn.
async fn dial(
    proxy: Arc<Proxy>,
    to: DialAddress,
    exchange: &[(&[u8], &[u8])],
) -> (Result<Dialled, UpstreamError>, Arc<Script>) {
    let script = Arc::new(Script::default());
    let dialer = ProxyDial::new(script.clone(), script.clone(), proxy);
    let serving = async {
        while script.server.lock().is_none() {
            tokio::task::yield_now().await;
        }
        let mut server = script.server.lock().take().unwrap();
        for (expected, answer) in exchange {
            let mut got = vec![0; expected.len()];
            server.read_exact(&mut got).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(expected));
            server.write_all(answer).await.unwrap();
        }
        server
    };
    let dialling = dialer.dial(&to, &|_| Ok(()), Duration::from_secs(3));
    let (dialled, server) = tokio::join!(dialling, serving);
    *script.server.lock() = Some(server);
    (dialled, script)
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_through_an_http_proxy_leads_to_the_server_by_its_name() {
    let request = "CONNECT tv.example:8080 HTTP/1.1\r\nHost: tv.example:8080\r\n\r\n";
    let exchange: &[(&[u8], &[u8])] =
        &[(request.as_bytes(), b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nfrom the server")];
    let (dialled, script) =
        dial(proxy(ProxyProtocol::Http, None), address(false, "tv.example", 8080), exchange).await;
    let mut dialled = dialled.unwrap();
    let mut bytes = [0; 15];
    dialled.socket.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"from the server", "nothing after the head is lost");
    assert_eq!(dialled.peer.map(|it| it.ip()), Some(SOMEWHERE));
    assert_eq!(*script.dialled.lock(), [address(false, "proxy", 3128)], "one connection, to the proxy");
}

#[tokio::test(start_paused = true)]
async fn tls_to_the_server_is_inside_of_the_tunnel_and_tls_to_the_proxy_around_it() {
    let request =
        "CONNECT tv.example:443 HTTP/1.1\r\nHost: tv.example:443\r\nProxy-Authorization: Basic YTpi\r\n\r\n";
    let exchange: &[(&[u8], &[u8])] = &[(request.as_bytes(), b"HTTP/1.0 200 OK\n\n")];
    let login = Some(("a", "b"));
    let (dialled, script) =
        dial(proxy(ProxyProtocol::Https, login), address(true, "tv.example", 443), exchange).await;
    dialled.unwrap();
    assert_eq!(*script.dialled.lock(), [address(true, "proxy", 3128)]);
    assert_eq!(*script.secured.lock(), ["tv.example"]);
}

#[tokio::test(start_paused = true)]
async fn socks_gets_the_name_and_the_login() {
    let request = b"\x05\x01\x00\x03\x0atv.example\x1f\x90";
    let answer = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";
    let to = || address(false, "tv.example", 8080);
    let (dialled, _) = dial(
        proxy(ProxyProtocol::Socks5, Some(("anna", "secret"))),
        to(),
        &[(b"\x05\x02\x00\x02", b"\x05\x02"), (b"\x01\x04anna\x06secret", b"\x01\x00"), (request, answer)],
    )
    .await;
    dialled.unwrap();
    let answer = b"\x05\x00\x00\x03\x03abc\x00\x00";
    let (dialled, _) =
        dial(proxy(ProxyProtocol::Socks5, None), to(), &[(b"\x05\x01\x00", b"\x05\x00"), (request, answer)])
            .await;
    dialled.unwrap();
    let request = [&b"\x05\x01\x00\x04"[..], &Ipv6Addr::LOCALHOST.octets(), b"\x00\x50"].concat();
    let (dialled, _) = dial(
        proxy(ProxyProtocol::Socks5, None),
        address(false, "::1", 80),
        &[(b"\x05\x01\x00", b"\x05\x00"), (&request, answer)],
    )
    .await;
    assert_eq!(dialled.unwrap().peer, Some("[::1]:80".parse().unwrap()));
}

#[tokio::test]
async fn a_failure_says_whether_the_proxy_its_login_or_the_server_is_the_cause() {
    let check = async |protocol, login: Option<(&str, &str)>, answer: &[u8], expected: &str| {
        let result = handshake_with(answer, &proxy(protocol, login), &address(false, "tv", 80)).await;
        assert_eq!(result.map_err(|it| it.label()), Err(expected), "{}", String::from_utf8_lossy(answer));
    };
    let http = ProxyProtocol::Http;
    for (answer, expected) in [
        (&b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"[..], "proxy_login"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "proxy_login"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy"),
        (b"HTTP/1.1 405 no\r\n\r\n", "proxy"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "proxy_target"),
        (b"HTTP/1.1 503 no\r\n\r\n", "proxy_target"),
        (b"HTTP/1.1 504 no\r\n\r\n", "proxy_target"),
        (b"HTTP/1.1 302 no\r\n\r\n", "proxy"),
        (b"HTTP/1.1 20\r\n\r\n", "proxy"),
        (b"HTTP/1.1\r\n\r\n", "proxy"),
        (b"SSH-2.0-x\n\n", "proxy"),
        (b"", "proxy"),
        (b"HTTP/1.1 200 OK\r\n", "proxy"),
        (&[b'x'; HEAD], "proxy"),
    ] {
        check(http, None, answer, expected).await;
    }
    let socks = ProxyProtocol::Socks5;
    for (answer, expected) in [
        (&b"\x05\xff"[..], "proxy_login"),
        (b"\x05\x02", "proxy"),
        (b"\x04\x00", "proxy"),
        (b"\x05\x00\x05\x01\x00\x01", "proxy_target"),
        (b"\x05\x00\x05\x02\x00\x01", "proxy"),
        (b"\x05\x00\x05\x03\x00\x01", "proxy_target"),
        (b"\x05\x00\x05\x04\x00\x01", "proxy_target"),
        (b"\x05\x00\x05\x05\x00\x01", "proxy_target"),
        (b"\x05\x00\x05\x06\x00\x01", "proxy_target"),
        (b"\x05\x00\x05\x07\x00\x01", "proxy"),
        (b"\x05\x00\x05\x00\x00\x09", "proxy"),
        (b"\x05\x00\x05\x00\x00\x01\x00", "proxy"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "proxy"),
        (b"", "proxy"),
    ] {
        check(socks, None, answer, expected).await;
    }
    check(socks, Some(("a", "b")), b"\x05\x02\x01\x01", "proxy_login").await;
    let long = "x".repeat(256);
    check(socks, Some((&long, "b")), b"\x05\x02\x01\x00", "address").await;
}

/// More than the longest head.
const HEAD: usize = 9 << 10;

#[tokio::test(start_paused = true)]
async fn a_proxy_that_does_not_answer_ends_in_time() {
    let script = Arc::new(Script::default());
    let dialer = ProxyDial::new(script.clone(), script.clone(), proxy(ProxyProtocol::Socks5, None));
    let to = address(false, "tv", 80);
    let dialling = dialer.dial(&to, &|_| Ok(()), Duration::from_secs(3));
    let dialled = timeout(Duration::from_secs(4), dialling).await.unwrap();
    assert_eq!(dialled.err().map(|it| it.label()), Some("connect_timeout"));
    let mut server = script.server.lock().take().unwrap();
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x05\x01\x00", "the connection is closed");
}

#[tokio::test]
async fn a_proxy_out_of_reach_is_named_as_such() {
    for (failure, text) in [
        (Cause::Dns, "the proxy failed: its name has no address"),
        (Cause::ConnectTimeout, "the proxy failed: it does not answer"),
        (
            Cause::Connect("connection refused".into()),
            "the proxy failed: connection failed: connection refused",
        ),
        (Cause::Tls("x".into()), "the proxy failed: TLS handshake failed: x"),
    ] {
        let script = Arc::new(Script { failure: Some(failure), ..Script::default() });
        let dialer =
            ProxyDial::new(script.clone(), script, proxy(ProxyProtocol::Http, Some(("anna", "secret"))));
        let to = address(false, "tv", 80);
        let dialled = dialer.dial(&to, &|_| Ok(()), Duration::from_secs(3)).await;
        assert_eq!(dialled.err().map(|it| it.to_string()).as_deref(), Some(text));
    }
    assert!(!format!("{:?}", proxy(ProxyProtocol::Http, Some(("anna", "secret")))).contains("secret"));
}

/// Holds T-acc.5: a provider does not lead the proxy into its own network by a numeric address.
#[tokio::test]
async fn a_numeric_address_behind_a_proxy_is_judged_and_a_name_is_not() {
    let check = async |host: &str, is_judged: bool| {
        let script = Arc::new(Script { failure: Some(Cause::Dns), ..Script::default() });
        let dialer = ProxyDial::new(script.clone(), script.clone(), proxy(ProxyProtocol::Http, None));
        let to = address(false, host, 80);
        let dialled = dialer.dial(&to, &|_| Err("no".to_owned()), Duration::from_secs(3)).await;
        let label = dialled.err().map(|it| it.label());
        assert_eq!(label, Some(if is_judged { "forbidden_address" } else { "proxy" }), "{host}");
        assert_eq!(script.dialled.lock().is_empty(), is_judged);
        assert!(dialer.resolve(&to, Duration::from_secs(1)).await.is_err());
    };
    for host in ["127.0.0.1", "192.168.1.1", "::1", "localhost", "LOCALHOST.", "a.localhost"] {
        check(host, true).await;
    }
    for host in ["tv.example", "localhost.example", "router"] {
        check(host, false).await;
    }
}
