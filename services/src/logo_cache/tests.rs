use std::sync::atomic::Ordering;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use crate::testing::{PNG, server};

fn cache(folder: &Path) -> Arc<LogoCache> {
    cache_with_times(folder, FETCH_TIME_MAX, FETCH_TIME_MAX)
}

fn cache_with_times(folder: &Path, time_max: Duration, first_copy_wait: Duration) -> Arc<LogoCache> {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let fetch = Fetch::new(FetchLimits::default()).unwrap();
    Arc::new(LogoCache::with_times(folder.join("logos"), fetch, time_max, first_copy_wait))
}

/// Requests a logo, and waits for the fetch that this starts.
async fn fetched(cache: &Arc<LogoCache>, url: &str, reach: Reach) -> bool {
    match cache.look_up(url, reach).await {
        (None, Some(fetch)) => {
            ended(fetch).await;
            true
        }
        _ => false,
    }
}

/// Waits for the end of a fetch.
async fn ended(mut fetch: watch::Receiver<()>) {
    while fetch.changed().await.is_ok() {}
}

#[tokio::test]
async fn a_logo_is_fetched_once_in_the_background_and_kept_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (url, n_requests) = server(PNG).await;
    let (first, anywhere) = (cache(folder.path()), Reach::default());
    let (None, Some(fetch)) = first.look_up(&url, anywhere).await else { panic!("a copy") };
    assert!(fetched(&first, &url, anywhere).await, "one fetch at a time");
    ended(fetch).await;
    assert_eq!(first.get(&url, anywhere).await.as_deref(), Some(PNG));
    assert_eq!(cache(folder.path()).get(&url, anywhere).await.as_deref(), Some(PNG));
    assert_eq!(n_requests.load(Ordering::Relaxed), 1);
    assert!(first.state.lock().fetching.is_empty());
}

#[tokio::test]
async fn a_failure_is_remembered_and_a_file_other_than_an_image_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let (url, n_requests) = server(b"<html>login</html>").await;
    let cache = cache(folder.path());
    assert!(fetched(&cache, &url, Reach::default()).await);
    for _ in 0..3 {
        assert!(matches!(cache.look_up(&url, Reach::default()).await, (None, None)));
    }
    assert_eq!(n_requests.load(Ordering::Relaxed), 1);
}

/// Kodi keeps the first picture that it gets for an address, a placeholder too.
#[tokio::test]
async fn the_first_request_gets_the_image_and_others_wait_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (url, n_requests) = server(PNG).await;
    let cache = cache(folder.path());
    let (one, other) = tokio::join!(cache.get(&url, Reach::default()), cache.get(&url, Reach::default()));
    assert_eq!((one.as_deref(), other.as_deref()), (Some(PNG), Some(PNG)));
    assert_eq!(n_requests.load(Ordering::Relaxed), 1);
}

/// The page requests hundreds of logos over six connections.
#[tokio::test]
async fn nobody_waits_for_a_host_that_was_slow_until_it_answers_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_with_times(folder.path(), FETCH_TIME_MAX, Duration::from_millis(50));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    assert_eq!(cache.get(&format!("{url}/1.png"), Reach::default()).await, None, "it does not answer");
    assert!(cache.state.lock().slow_hosts.contains_key("127.0.0.1"));
    let (None, Some(fetch)) = cache.look_up(&format!("{url}/1.png"), Reach::default()).await else {
        panic!("the fetch goes on")
    };
    assert!(!cache.has_ended_soon(&url, fetch.clone()).await);
    let (mut socket, _) = listener.accept().await.unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", PNG.len());
    socket.write_all(&[head.as_bytes(), PNG].concat()).await.unwrap();
    ended(fetch).await;
    assert_eq!(cache.get(&format!("{url}/1.png"), Reach::default()).await.as_deref(), Some(PNG));
    assert!(cache.state.lock().slow_hosts.is_empty());
}

/// A server of images could hold a place among the fetches for ever.
#[tokio::test]
async fn a_server_that_never_completes_its_answer_delays_nobody_and_its_fetch_ends() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_with_times(folder.path(), Duration::from_millis(300), FETCH_TIME_MAX);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            if silent.is_empty() {
                silent.push(socket);
                continue;
            }
            // A byte at a time, each within the time for the next one.
            tokio::spawn(async move {
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100000\r\n\r\n";
                let mut sent = socket.write_all(head).await;
                while sent.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    sent = socket.write_all(b"x").await;
                }
            });
        }
    });
    for path in ["silent.png", "slow.png"] {
        let url = format!("{url}/{path}");
        let (None, Some(fetch)) = cache.look_up(&url, Reach::default()).await else {
            panic!("{path}: the answer waits for no server")
        };
        timeout(Duration::from_secs(8), ended(fetch)).await.expect("the fetch ends");
        assert!(cache.state.lock().fetching.is_empty(), "{path}");
        let again = cache.look_up(&url, Reach::default()).await;
        assert!(matches!(again, (None, None)), "{path}: the failure is remembered");
    }
    serving.abort();
}

#[tokio::test]
async fn the_number_of_waiting_fetches_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    let (_running, waits) = watch::channel(());
    let others = (0..FETCHES_WAITING_MAX).map(|n| (n.to_string(), waits.clone()));
    cache.state.lock().fetching.extend(others);
    assert!(!fetched(&cache, "http://127.0.0.1:1/x.png", Reach::default()).await);
}

#[tokio::test]
async fn a_logo_that_a_list_from_the_internet_names_is_not_fetched_from_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let (url, n_requests) = server(PNG).await;
    let cache = cache(folder.path());
    assert!(fetched(&cache, &url, Reach::default()).await);
    assert_eq!(cache.get(&url, Reach::default()).await.as_deref(), Some(PNG), "an admin typed it");
    let public = Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist);
    assert!(fetched(&cache, &url, public).await);
    assert_eq!(cache.get(&url, public).await, None);
    assert_eq!(n_requests.load(Ordering::Relaxed), 1);
}

#[test]
fn the_oldest_copies_are_deleted_first() {
    let mut copies = Copies::default();
    let at = |n| SystemTime::UNIX_EPOCH + Duration::from_secs(n);
    copies.add("new".to_owned(), at(2), COPIES_BYTES_MAX - 1);
    copies.add("old".to_owned(), at(1), 1);
    assert_eq!(copies.surplus(), None);
    copies.add("old".to_owned(), at(3), 2);
    assert_eq!(copies.surplus().as_deref(), Some("new"));
    assert_eq!((copies.surplus(), copies.bytes), (None, 2));
}
