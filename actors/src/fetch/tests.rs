//! Tests of downloads, against a server on a real socket with arbitrary answers.

use std::sync::Arc;

use domain::egress::AllowedNetworks;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::*;

/// The behaviour of a server for one connection.
#[derive(Clone)]
enum Answer {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes and then nothing more.
    Hold(Vec<u8>),
    /// Sends the head, and then a byte whenever the other side has read one.
    Drip,
}

struct Server {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (heads.clone(), answers.into_iter().collect::<Vec<_>>());
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                seen.lock().push(String::from_utf8(head).unwrap().to_ascii_lowercase());
                match answer {
                    Answer::Bytes(bytes) => socket.write_all(&bytes).await.unwrap(),
                    Answer::Hold(bytes) => {
                        socket.write_all(&bytes).await.unwrap();
                        tokio::spawn(async move {
                            Notify::new().notified().await;
                            drop(socket);
                        });
                    }
                    Answer::Drip => {
                        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                        while socket.write_all(b".").await.is_ok() {
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
        });
        Self { address, heads }
    }

    fn url(&self) -> String {
        format!("http://{}/get.php?password=secret", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

fn ok(body: &str) -> Answer {
    Answer::Bytes(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
            .into(),
    )
}

fn redirect(to: &str) -> Answer {
    Answer::Bytes(
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .into(),
    )
}

fn fetch(limits: FetchLimits) -> Fetch {
    // Fails in the second test of a process, which finds the provider of the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Fetch::new(limits).unwrap()
}

/// Short time limits, for tests that exceed them.
fn hasty() -> FetchLimits {
    FetchLimits { total_timeout: Duration::from_millis(300), ..FetchLimits::default() }
}

async fn read(fetch: &Fetch, url: &str, headers: &RequestHeaders) -> Result<String, FetchError> {
    let mut body = fetch.get(url, headers, Reach::default()).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(String::from_utf8(bytes).unwrap())
}

fn headers() -> RequestHeaders {
    let mut headers = RequestHeaders::default();
    for (name, value) in [
        ("User-Agent", "Box/1"),
        ("Referer", "http://r/?key=k1"),
        ("X-Token", "k2"),
        ("Accept-Encoding", "br"),
    ] {
        assert!(headers.set(name, value));
    }
    headers
}

#[tokio::test]
async fn the_headers_of_an_account_go_to_its_server_and_to_no_other() {
    let other = Server::start([ok("there")]).await;
    let server = Server::start([redirect("/again"), redirect(&other.url())]).await;
    let text = read(&fetch(FetchLimits::default()), &server.url(), &headers()).await.unwrap();
    assert_eq!(text, "there");
    for head in server.heads() {
        for line in ["user-agent: box/1", "referer: http://r/?key=k1", "x-token: k2", "accept-encoding: gzip"]
        {
            assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} is not in {head}");
        }
        assert_eq!(head.matches("accept-encoding").count(), 1, "{head}");
    }
    assert_eq!(server.heads().len(), 2, "the same server got them again");
    let head = other.heads().join("");
    assert!(head.contains("user-agent: box/1"), "{head}");
    assert!(!head.contains("k1") && !head.contains("k2") && !head.contains("referer"), "{head}");
}

#[tokio::test]
async fn a_login_in_the_address_does_not_travel_with_a_redirect() {
    let other = Server::start([ok("there")]).await;
    let server = Server::start([redirect(&other.url())]).await;
    let url = server.url().replace("http://", "http://anna:hunter2@");
    read(&fetch(FetchLimits::default()), &url, &RequestHeaders::default()).await.unwrap();
    assert!(server.heads()[0].contains("\r\nauthorization: basic "), "{:?}", server.heads());
    assert!(!other.heads()[0].contains("authorization"), "{:?}", other.heads());
}

#[tokio::test]
async fn redirects_lead_only_to_http_and_are_limited() {
    for to in ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"] {
        let server = Server::start([redirect(to)]).await;
        let refused = read(&fetch(FetchLimits::default()), &server.url(), &RequestHeaders::default()).await;
        assert!(matches!(refused, Err(FetchError::Address)), "{to}: {refused:?}");
    }
    let server = Server::start((0..20).map(|_| redirect("/again"))).await;
    let refused = read(&fetch(FetchLimits::default()), &server.url(), &RequestHeaders::default()).await;
    assert!(matches!(refused, Err(FetchError::Redirect { .. })), "{refused:?}");
    assert_eq!(server.heads().len(), REDIRECTS_MAX + 1);
}

#[tokio::test]
async fn a_truncated_body_is_an_error_without_the_address() {
    let answers: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"",
    ];
    for answer in answers {
        let server = Server::start([Answer::Bytes(answer.into())]).await;
        let error = read(&fetch(FetchLimits::default()), &server.url(), &RequestHeaders::default())
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::Transfer { .. }), "{error:?}");
        let text = error.with_causes();
        assert!(text.starts_with("fetch from \"127.0.0.1\": ") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_too_long_body_is_not_read_to_its_end() {
    let endless = || Answer::Hold(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000)).into());
    let said = || Answer::Hold(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_vec());
    for answer in [endless(), said()] {
        let server = Server::start([answer]).await;
        let fetch = fetch(FetchLimits { bytes_max: 1000, ..FetchLimits::default() });
        let error = read(&fetch, &server.url(), &RequestHeaders::default()).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLong { bytes_max: 1000, .. }), "{error:?}");
    }
}

/// Each read is in time, but not all together.
#[tokio::test]
async fn the_total_timeout_ends_a_dripping_body() {
    let server = Server::start([Answer::Drip]).await;
    let error = read(&fetch(hasty()), &server.url(), &RequestHeaders::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::Slow { .. }), "{error:?}");
}

#[tokio::test]
async fn a_silent_server_is_a_timeout() {
    let limits = FetchLimits { read_timeout: Duration::from_millis(100), ..FetchLimits::default() };
    for head in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"] {
        let server = Server::start([Answer::Hold(head.to_vec())]).await;
        let error = read(&fetch(limits), &server.url(), &RequestHeaders::default()).await.unwrap_err();
        assert!(matches!(error, FetchError::Transfer { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_unrequested_encoding_is_refused() {
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";
    let server = Server::start([Answer::Bytes(answer.to_vec())]).await;
    let error =
        read(&fetch(FetchLimits::default()), &server.url(), &RequestHeaders::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::Encoding { .. }), "{error:?}");
}

#[tokio::test]
async fn an_error_status_is_reported() {
    for status in [401, 403, 404, 500, 509] {
        let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let server = Server::start([Answer::Bytes(answer.into())]).await;
        let error = read(&fetch(FetchLimits::default()), &server.url(), &RequestHeaders::default())
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with(&format!("\"127.0.0.1\" answered {status}")), "{error}");
    }
}

#[test]
fn headers_go_only_to_their_server_and_its_https_port() {
    let check =
        |first: &str, now: &str| may_receive_headers(&Url::parse(first).unwrap(), &Url::parse(now).unwrap());
    for now in ["http://h/other?a=b", "http://h:80/", "http://H/", "https://h/", "https://h:443/"] {
        assert!(check("http://h/list", now), "{now}");
    }
    for now in ["http://h:8080/", "https://h:8443/", "http://other/", "https://other/", "http://h.example/"] {
        assert!(!check("http://h/list", now), "{now}");
    }
    assert!(!check("https://h/list", "http://h/list"), "what was protected stays so");
    assert!(!check("http://h:8080/list", "https://h/list"), "another port may be another's server");
}

/// Reads an address that a provider of this network named.
async fn read_named(server: &Server, host: &str, origin: Distance) -> Result<String, FetchError> {
    let url = server.url().replace("127.0.0.1", host);
    let reach = Reach::named_by(origin, AllowedNetworks::OfPlaylist);
    let mut body = fetch(FetchLimits::default()).get(&url, &RequestHeaders::default(), reach).await?;
    assert_eq!(body.origin(), Some(Distance::Loopback));
    Ok(String::from_utf8(body.next().await?.unwrap().to_vec()).unwrap())
}

// Holds T-acc.5 for everything that is fetched.
#[tokio::test]
async fn no_provider_leads_to_a_nearer_network_by_name_by_number_or_by_redirect() {
    let server = Server::start([ok("near"), ok("near")]).await;
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "0", "[::ffff:127.0.0.1]"] {
        for origin in [Distance::Public, Distance::Private] {
            let read = read_named(&server, host, origin).await;
            let Err(FetchError::Forbidden { reason: EgressError::ToThisMachine, .. }) = read else {
                panic!("{host} from {origin:?}: {read:?}")
            };
        }
    }
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(read_named(&server, host, Distance::Loopback).await.unwrap(), "near");
    }
    assert_eq!(server.heads().len(), 2, "refused before the first byte");

    // An address that an admin typed may be here, and its redirects may as well, but not lead to metadata services.
    let near = Server::start([ok("near")]).await;
    let server = Server::start([redirect(&near.url()), redirect("http://169.254.169.254/latest/")]).await;
    let fetch = fetch(FetchLimits::default());
    assert_eq!(read(&fetch, &server.url(), &RequestHeaders::default()).await.unwrap(), "near");
    let refused = read(&fetch, &server.url(), &RequestHeaders::default()).await;
    assert!(
        matches!(&refused, Err(FetchError::Forbidden { reason: EgressError::Reserved, .. })),
        "{refused:?}"
    );
    // Nor to the gateway itself.
    let own: SocketAddr = near.address.parse().unwrap();
    let server = Server::start([redirect(&near.url())]).await;
    let refused = read(&fetch.beside([own].into()), &server.url(), &RequestHeaders::default()).await;
    assert!(
        matches!(&refused, Err(FetchError::Forbidden { reason: EgressError::OwnListener, .. })),
        "{refused:?}"
    );
    let text = refused.unwrap_err().with_causes();
    assert_eq!(
        text,
        "\"127.0.0.1\" leads to an address that is not allowed: a provider may not lead to the gateway itself"
    );
}
