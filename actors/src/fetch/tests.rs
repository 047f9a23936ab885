//! Tests of downloads, against a server on a real socket with arbitrary answers.

use std::sync::Arc;

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::account_addresses::HostFailure;
use domain::egress::AllowedNetworks;
use domain::ids::ProfileId;
use domain::plan::PlanContext;
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

/// The node `cellar`, and everything that it was asked for. It heeds no limits.
struct Cellar {
    fetch: Fetch,
    asked: Mutex<Vec<(AccountRequest, Vec<String>)>>,
}

/// A body that another node reads.
struct AtCellar(FetchBody);

impl RelayedBody for AtCellar {
    fn next(
        &mut self,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Option<Bytes>, FetchError>> + Send + '_>> {
        Box::pin(self.0.next())
    }
}

impl NodeFetcher for Cellar {
    fn fetch<'a>(&'a self, request: &'a AccountRequest, nodes: &'a [String]) -> Relaying<'a> {
        self.asked.lock().push((request.clone(), nodes.to_owned()));
        Box::pin(async move {
            let request = AccountRequest { limits: FetchLimits::default(), ..request.clone() };
            let sent = self.fetch.send_for_node(&account(&[]), &request).await;
            let sent = sent.map_err(|error| FetchError::AtNode { node: "cellar".to_owned(), error })?;
            Ok(sent.map(|body| RelayedAnswer { head: body.head().clone(), body: Box::new(AtCellar(body)) }))
        })
    }
}

/// Returns an account that only nodes with these names may use.
fn account(nodes: &[&str]) -> Account {
    let profile = AccountProfile::default_of(ProfileId(1), "Home", 1);
    let account = Account::new(AccountId(7), "Home", PlaylistLocation::None, profile, 0);
    Account { nodes: nodes.iter().map(|it| (*it).to_owned()).collect(), ..account }
}

/// Returns the client of the node `attic`, which may ask `cellar`.
fn attic(limits: FetchLimits) -> (Fetch, Arc<Cellar>) {
    let cellar = Arc::new(Cellar { fetch: fetch(FetchLimits::default()), asked: Mutex::default() });
    let conditions = PlanContext { node: Some("attic".into()), ..PlanContext::default() };
    (fetch(limits).among(conditions, Arc::<Cellar>::clone(&cellar)), cellar)
}

#[tokio::test]
async fn only_an_account_that_this_node_may_not_use_is_asked_through_its_nodes() {
    let (attic, cellar) = attic(FetchLimits::default());
    let server = Server::start([redirect("/again"), ok("there"), ok("here"), ok("here")]).await;
    let elsewhere = attic.for_account(&account(&["cellar", "shed"]));
    assert_eq!(read(&elsewhere, &server.url(), &headers()).await.unwrap(), "there");
    {
        let asked = cellar.asked.lock();
        let (request, nodes) = asked.first().unwrap();
        assert_eq!((request.account, request.url.expose()), (AccountId(7), server.url().as_str()));
        assert_eq!((&request.headers, request.limits), (&headers(), FetchLimits::default()));
        assert_eq!(nodes, &["cellar", "shed"]);
    }
    assert!(server.heads().iter().all(|it| it.contains("x-token: k2")), "{:?}", server.heads());
    for nodes in [&[][..], &["shed", "attic"]] {
        let own = attic.for_account(&account(nodes));
        assert_eq!(read(&own, &server.url(), &headers()).await.unwrap(), "here");
    }
    assert_eq!(cellar.asked.lock().len(), 1);

    // No request to such an account leaves this node.
    let sent = elsewhere.post_json(&server.url(), "{}".to_owned(), &headers(), Reach::default()).await;
    assert!(matches!(sent, Err(FetchError::NoNode(_))));
}

#[tokio::test]
async fn limits_and_validators_of_an_answer_count_through_another_node() {
    let (attic, _cellar) = attic(FetchLimits { bytes_max: 10, ..FetchLimits::default() });
    let marked = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlist";
    let unchanged = b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";
    let long = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nmore than ten bytes";
    let answers = [marked.to_vec(), unchanged.to_vec(), long.to_vec(), Vec::new()].map(Answer::Bytes);
    let server = Server::start(answers).await;
    let fetch = attic.for_account(&account(&["cellar"]));
    let body = fetch.get(&server.url(), &headers(), Reach::default()).await.unwrap();
    let known = body.validators().clone();
    assert_eq!((known.etag.as_deref(), body.announced()), (Some("\"a\""), Some(4)));
    assert_eq!(body.origin(), Some(Distance::Loopback));
    assert_eq!(body.whole().await.unwrap(), b"list");
    let unchanged = fetch.get_if_changed(&server.url(), &headers(), Reach::default(), &known).await;
    assert!(unchanged.unwrap().is_none());
    let long = read(&fetch, &server.url(), &headers()).await.unwrap_err();
    assert!(matches!(long, FetchError::TooLong { bytes_max: 10, .. }), "{long:?}");
    let text = read(&fetch, &server.url(), &headers()).await.unwrap_err().with_causes();
    let is_whole =
        text.starts_with("fetch from \"127.0.0.1\": ") && text.ends_with(" (asked by the node cellar)");
    assert!(is_whole && !text.contains("secret"), "{text}");
}

/// Returns the error of another node as it arrives here.
fn relayed(error: &FetchError, asked: &str) -> FetchError {
    let text = serde_json::to_string(&RelayedError::new(error, asked)).unwrap();
    FetchError::AtNode { node: "cellar".to_owned(), error: serde_json::from_str(&text).unwrap() }
}

#[tokio::test]
async fn an_error_of_another_node_means_the_same_here() {
    let host = || "tv.example".to_owned();
    let status = |status: u16, seconds: Option<u64>| {
        let status = StatusCode::from_u16(status).unwrap();
        FetchError::Status { host: host(), status, retry_after: seconds.map(Duration::from_secs) }
    };
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = read(&fetch(hasty()), &format!("http://{closed}/?password=secret"), &headers()).await;
    for (error, asked) in [
        (refused.unwrap_err(), "127.0.0.1"),
        (FetchError::Name { host: host(), cause: io::ErrorKind::NotFound.into() }, "tv.example"),
        (FetchError::Name { host: host(), cause: io::ErrorKind::NotFound.into() }, "other.example"),
        (FetchError::Slow { host: host(), limit: Duration::from_secs(1) }, "tv.example"),
        (FetchError::Encoding { host: host() }, "tv.example"),
        (FetchError::TooLong { host: host(), bytes_max: 1 }, "tv.example"),
        (FetchError::Redirect { host: host() }, "tv.example"),
        (FetchError::Address, ""),
        (FetchError::ProxyLogin, ""),
        (FetchError::ProxyName(io::ErrorKind::TimedOut.into()), ""),
        (status(403, None), "tv.example"),
        (status(429, None), "tv.example"),
        (status(429, Some(60)), "tv.example"),
        (status(503, Some(5)), "tv.example"),
        (status(502, None), "tv.example"),
    ] {
        let here = relayed(&error, asked);
        let facts = |it: &FetchError| {
            let failure = it.host_failure(asked);
            (failure, it.is_temporary(), it.asks_to_wait(), it.is_answer(), it.completes_failed_to())
        };
        assert_eq!(facts(&here), facts(&error), "{error:?}");
        let text = here.with_causes();
        assert_eq!(text, format!("{} (asked by the node cellar)", error.with_causes()));
        assert!(!text.contains("secret"), "{text}");
    }
    for error in [
        FetchError::NoNode("none of the nodes of the account runs: cellar".to_owned()),
        FetchError::NodeLost { node: "cellar".to_owned(), reason: "reset".to_owned() },
    ] {
        assert_eq!((error.is_temporary(), error.is_answer()), (true, false), "{error}");
        assert_eq!(error.host_failure(""), HostFailure::Other, "{error}");
    }
}
