//! Restarts with `headwater restart`, with the real binary. Those during which viewers keep their streams are in
//! `restart_viewers.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::data_folder::Data;
use crate::support::binary::Binary;
use crate::support::client::{Ended, Player, Reading, Request, say};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::{eventually, until_async};

pub(crate) const NEWS: &str = "/live/anna/news.ts";
const SPORT: &str = "/live/anna/sport.ts";
/// Connections that are made at the same time.
const N_CLIENTS: usize = 8;
/// Connections that are made at least, while the gateway restarts.
const CONNECTIONS_MIN: usize = 1_000;

pub(crate) async fn set_up() -> (Provider, Data) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news").bits_per_second(8_000_000));
    provider.path(SPORT).plays(Picture::new("sport").bits_per_second(8_000_000));
    // The provider refuses and counts a second connection, as the account allows one.
    provider.limit("anna", 1, 403, Duration::ZERO);
    let data = Data::with_list(provider.playlist(&[("news", "News", NEWS), ("sport", "Sport", SPORT)])).await;
    (provider, data)
}

pub(crate) fn n_starts(program: &Binary) -> usize {
    program.output().matches("gateway started").count()
}

/// Watches a channel, and opens it again whenever it ends.
async fn watch_again_and_again(address: SocketAddr, path: String, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let player = Player::ask(address, Request::get(&path)).await;
        let _ = player.ended().await;
    }
}

/// Makes connections until it is over; each gets a whole answer. Returns their number.
async fn connect_again_and_again(address: SocketAddr, is_over: Arc<AtomicBool>, n_made: Arc<AtomicUsize>) {
    while !is_over.load(Ordering::Relaxed) {
        let answer = say(address, b"GET /healthz HTTP/1.0\r\n\r\n").await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("ok\n"), "{answer:?}");
        n_made.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_refuses_no_connection_and_exceeds_no_limit() {
    let (provider, data) = set_up().await;
    let mut program = data.run(&["serve", "--set", "limits.drain_time=0"]);
    let address = program.address().await;
    let path = program.streams().await.remove(0);
    let (is_over, n_made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let watching = tokio::spawn(watch_again_and_again(address, path.clone(), is_over.clone()));
    let connecting: Vec<_> = (0..N_CLIENTS)
        .map(|_| tokio::spawn(connect_again_and_again(address, is_over.clone(), n_made.clone())))
        .collect();
    eventually("the channel to play", || provider.open() == 1).await;

    let (code, reply) = data.ran(&["restart"]).await;
    assert_eq!((code, reply.trim()), (Some(0), "the new process is prepared and takes over"));
    eventually("the new process to start", || n_starts(&program) == 2).await;
    eventually("the channel to play again", || provider.path(NEWS).n_requests() == 2).await;
    program.signal("USR2");
    eventually("another process to start", || n_starts(&program) == 3).await;
    eventually("the channel to play again", || provider.path(NEWS).n_requests() == 3).await;
    eventually("enough connections", || n_made.load(Ordering::Relaxed) >= CONNECTIONS_MIN).await;

    is_over.store(true, Ordering::Relaxed);
    for task in connecting {
        task.await.expect("every connection got an answer");
    }
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    // The process that was started still stands for the gateway.
    assert!(program.is_running());
    program.signal("TERM");
    let (code, output) = program.outcome().await;
    assert_eq!(code, Some(0), "{output}");
    eventually("the provider's connections to close", || provider.open() == 0).await;
    watching.abort();
    assert_eq!(data.ran(&["check"]).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_that_cannot_start_changes_nothing() {
    let (_provider, data) = set_up().await;
    let config = data.folder.path().join("headwater.toml");
    std::fs::write(&config, "").unwrap();
    let mut program =
        data.run(&["--config", &config.display().to_string(), "serve", "--set", "limits.drain_time=0"]);
    let address = program.address().await;
    let player = Player::watch(address, &program.streams().await[0]).await;
    player.sees("news").await;

    let faults = [
        ("[engine]\nstall_timeout = \"never\"\n", "headwater.toml: line 2"),
        ("[discovery]\nno_such_key = true\n", "no_such_key"),
    ];
    for (text, named) in faults {
        std::fs::write(&config, text).unwrap();
        let (code, reply) = data.ran(&["restart"]).await;
        assert!(code == Some(1) && reply.contains(named), "{code:?}: {reply}");
    }
    // The viewer has noticed nothing.
    player.more_bytes(1_000_000).await;
    assert!(player.is_watching() && program.is_running());
    assert_eq!(n_starts(&program), 1);
    player.received(|it| it.ts.assert_clean());

    // With the fault removed, the next one works.
    std::fs::write(&config, "").unwrap();
    let (code, reply) = data.ran(&["restart"]).await;
    assert_eq!(code, Some(0), "{reply}");
    assert_eq!(player.ended().await, Ended::Whole);
    eventually("the new process to start", || n_starts(&program) == 2).await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
}

/// Returns the process that a process has started and that is called like the gateway.
pub(crate) fn child_of(id: u32) -> Option<String> {
    // A list for each thread that has started some.
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let lists = tasks.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("children")).ok());
    let children: String = lists.collect();
    let is_taking_over = |it: &&str| {
        std::fs::read(format!("/proc/{it}/cmdline"))
            .is_ok_and(|it| String::from_utf8_lossy(&it).contains("--take-over"))
    };
    children.split_whitespace().find(is_taking_over).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_that_is_killed_after_the_old_one_stopped_is_replaced() {
    let (provider, data) = set_up().await;
    let mut program =
        data.run(&["serve", "--set", "limits.drain_timeout=600", "--set", "limits.drain_time=0"]);
    let address = program.address().await;
    let path = program.streams().await.remove(0);
    // A viewer that does not read keeps the old process from closing its store.
    let slow = Player::ask(address, Request::get(&path).receive_buffer(8 << 10)).await;
    slow.sees("news").await;
    slow.read(Reading::Nothing);
    // Fills all buffers between gateway and player.
    eventually("the provider to send much", || provider.path(NEWS).open() == 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    assert_eq!(data.ran(&["restart"]).await.0, Some(0));
    eventually("the old process to stop", || program.output().contains("gateway stopping")).await;
    let killed = child_of(program.id()).expect("the new process waits");
    let status = std::process::Command::new("kill").args(["-KILL", &killed]).status();
    assert!(status.unwrap().success());
    // A connection that comes now waits for the process that replaces it.
    let waiting = tokio::spawn(async move { say(address, b"GET /healthz HTTP/1.0\r\n\r\n").await });
    slow.reset().await;
    let answer = waiting.await.unwrap();
    assert!(answer.ends_with(b"ok\n"), "{}", String::from_utf8_lossy(&answer));
    eventually("another process to start", || n_starts(&program) == 2).await;
    assert_ne!(child_of(program.id()), Some(killed));
    assert!(program.output().contains("the old program starts again"), "{}", program.output());

    let player = Player::watch(address, &path).await;
    player.sees("news").await;
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    assert_eq!(player.ended().await, Ended::Whole);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gateway_a_restart_says_so() {
    let (_provider, data) = set_up().await;
    let (code, reply) = data.ran(&["restart"]).await;
    assert!(code == Some(1) && reply.contains("headwater serve"), "{reply}");
    // An argument that is for the gateway itself is refused as such.
    let (code, reply) = data.ran(&["serve", "--take-over"]).await;
    assert!(code == Some(1) && reply.contains("standard input"), "{reply}");
    until_async("the store to be free", async || data.ran(&["check"]).await.0 == Some(0)).await;
}
