//! Tests of streams that are asked for at several addresses.

use super::*;

/// Other addresses of a stream, and what a request noted about them.
struct OtherPaths {
    n_asked: AtomicUsize,
    opened: Mutex<Vec<String>>,
    n_failed: AtomicUsize,
}

impl OtherAddresses for OtherPaths {
    fn after_refusal(&self) -> Vec<String> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        ["http://a/live/u/p/7", "http://a/live/u/p/7.m3u8"].map(str::to_owned).into()
    }

    fn opened(&self, url: &str) {
        self.opened.lock().push(url.to_owned());
    }

    fn failed(&self) {
        self.n_failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a request for a stream that has other forms of its address.
fn request_with_forms() -> (OpenRequest, Arc<OtherPaths>) {
    let others = Arc::new(OtherPaths {
        n_asked: AtomicUsize::new(0),
        opened: Mutex::default(),
        n_failed: AtomicUsize::new(0),
    });
    let request = OpenRequest {
        url: "http://a/live/u/p/7.ts".into(),
        other_addresses: Some(others.clone()),
        ..OpenRequest::default()
    };
    (request, others)
}

fn paths_of(provider: &MemoryProvider) -> Vec<String> {
    provider.requests().into_iter().map(|it| it.path).collect()
}

/// Returns a web page of another kind than [`Behaviour::Html`].
fn page(head: &str, body: &str) -> Behaviour {
    Behaviour::Raw(format!("HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n{body}").into())
}

#[tokio::test(start_paused = true)]
async fn other_forms_of_an_address_are_asked_one_after_the_other_with_one_permit() {
    let refusals = || {
        [
            Behaviour::Status(404),
            Behaviour::Status(405),
            Behaviour::Status(406),
            Behaviour::Html,
            page("Content-Type: text/html; charset=utf-8\r\n", "not found"),
            page("", "<!DOCTYPE html><title>Login</title>"),
            page("Content-Type: video/mp2t\r\n", "<?xml version=\"1.0\"?><html></html>"),
            // The same server says it at another address.
            Behaviour::Redirect("/gone".to_owned()),
            Behaviour::Redirect("http://a/login".to_owned()),
        ]
    };
    for (first, second) in refusals().into_iter().zip(refusals().into_iter().rev()) {
        let case = format!("{first:?}, {second:?}");
        let setup = Setup::new();
        setup.a.set("/login", Behaviour::Html);
        setup.a.set("/live/u/p/7.ts", first);
        setup.a.set("/live/u/p/7", second);
        setup.a.set("/live/u/p/7.m3u8", Behaviour::play("seven"));
        let (request, others) = request_with_forms();
        let mut source = setup.open_request(request).await.unwrap_or_else(|it| panic!("{case}: {it}"));
        let mut paths = paths_of(&setup.a);
        paths.retain(|it| it.starts_with("/live"));
        assert_eq!(paths, ["/live/u/p/7.ts", "/live/u/p/7", "/live/u/p/7.m3u8"], "{case}");
        assert_eq!((setup.a.peak(), setup.permits.n_out(), setup.permits.n_delivered()), (1, 1, 1), "{case}");
        assert_eq!(others.n_asked.load(Ordering::Relaxed), 1, "{case}");
        assert_eq!(*others.opened.lock(), ["http://a/live/u/p/7.m3u8"], "{case}");
        let (bytes, _) = read_bytes(&mut source, 100_000).await;
        assert_eq!(labels_in(&bytes), ["seven"]);
        drop(source);
        setup.is_clean().await;
    }
    // The first form that plays is the last one that is asked for.
    for n_refused in 0..3 {
        let setup = Setup::new();
        let all = ["/live/u/p/7.ts", "/live/u/p/7", "/live/u/p/7.m3u8"];
        all[n_refused..].iter().for_each(|it| setup.a.set(it, Behaviour::play("x")));
        let (request, others) = request_with_forms();
        drop(setup.open_request(request).await.unwrap());
        assert_eq!(paths_of(&setup.a), all[..=n_refused]);
        assert_eq!(others.n_asked.load(Ordering::Relaxed), n_refused.min(1));
        assert_eq!(*others.opened.lock(), [format!("http://a{}", all[n_refused])]);
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_and_every_other_failure_never_lead_to_another_form() {
    let statuses = [400, 401, 402, 403, 407, 408, 410, 423, 429, 451, 454, 456, 458, 466, 500, 502, 503, 509];
    let statuses = statuses.map(Behaviour::Status);
    let others = [
        Behaviour::Empty,
        Behaviour::Json,
        Behaviour::Garbage,
        Behaviour::NoAnswer,
        Behaviour::Close,
        Behaviour::Reset,
        // The server knows the address; the one behind it does not have the stream.
        Behaviour::Redirect("http://b/live/7".to_owned()),
    ];
    for failure in statuses.into_iter().chain(others) {
        let case = format!("{failure:?}");
        let setup = Setup::new();
        setup.a.set("/live/u/p/7", Behaviour::play("x"));
        setup.a.set("/live/u/p/7.ts", failure.clone());
        let (request, others) = request_with_forms();
        let error = setup.open_request(request).await.expect_err(&case);
        assert_eq!(paths_of(&setup.a), ["/live/u/p/7.ts"], "{case}");
        assert_eq!(others.n_asked.load(Ordering::Relaxed), 0, "{case}");
        assert!(others.opened.lock().is_empty(), "{case}");
        if let Behaviour::Status(status) = failure {
            assert_eq!(error.cause(), &Cause::Status(status));
        }
        setup.is_clean().await;
        // The same answer to the second form ends the search, and the first refusal is the error.
        setup.a.set("/live/u/p/7.ts", Behaviour::Status(404));
        setup.a.set("/live/u/p/7", failure);
        setup.a.set("/live/u/p/7.m3u8", Behaviour::play("x"));
        let (request, others) = request_with_forms();
        let error = setup.open_request(request).await.expect_err(&case);
        assert_eq!(error.cause(), &Cause::Status(404), "{case}");
        assert_eq!(paths_of(&setup.a)[1..], ["/live/u/p/7.ts", "/live/u/p/7"], "{case}");
        assert!(others.opened.lock().is_empty() && others.n_failed.load(Ordering::Relaxed) == 1, "{case}");
        assert_eq!(setup.a.peak(), 1, "{case}");
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_opening_of_other_forms_dropped_at_any_point_returns_its_permit_after_its_socket() {
    for n in 1.. {
        let setup = Setup::new();
        setup.a.set("/live/u/p/7.m3u8", Behaviour::play("x"));
        let (request, others) = request_with_forms();
        let opened = drop_after(n, setup.open_request(request)).await;
        let is_done = opened.is_some();
        assert_eq!(
            (others.opened.lock().len(), others.n_failed.load(Ordering::Relaxed)),
            (usize::from(is_done), 0)
        );
        drop(opened);
        setup.is_clean().await;
        assert!(setup.a.peak() <= 1, "{n}");
        if is_done {
            break;
        }
    }
}
