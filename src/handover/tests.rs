//! Tests of the messages. Those of whole processes are in `tests/it/restart.rs`.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::Duration;

use config::Config;

use super::channel::{Channel, Message};
use super::*;

const SHORT: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_message_carries_sockets_and_waits_for_a_reader() {
    let (a, b) = Channel::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let message = Message::Listeners { api: listen, player: listen };
    a.send(&message, &[listener.as_fd(), listener.as_fd()]).unwrap();
    a.send(&Message::Go { is_serving: true }, &[]).unwrap();
    drop(a);
    let (received, fds) = b.receive(LONG).unwrap();
    assert_eq!((received, fds.len()), (message, 2));
    let copy = TcpListener::from(fds.into_iter().next().unwrap());
    assert_eq!(copy.local_addr().unwrap(), listener.local_addr().unwrap());
    assert_eq!(b.receive(LONG).unwrap().0, Message::Go { is_serving: true });
    assert_eq!(b.receive(LONG).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_silent_process_and_one_that_has_ended_are_errors() {
    let (a, b) = Channel::pair().unwrap();
    assert_eq!(a.receive(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(b);
    assert_eq!(a.receive(LONG).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(a.send(&Message::Go { is_serving: false }, &[]).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_socket_is_taken_over_only_for_the_same_address() {
    let config = Config {
        api_listen: "127.0.0.1:0".parse().unwrap(),
        player_listen: "127.0.0.1:0".parse().unwrap(),
        ..Config::default()
    };
    let first = Listeners::bind(&config, None).unwrap();
    let address = |it: &Listeners| (it.api.1.local_addr().unwrap(), it.player.1.local_addr().unwrap());
    let (api, player) = address(&first);
    let changed = Config { player_listen: "localhost:0".parse().unwrap(), ..config.clone() };
    assert_eq!(changed, config, "two ways to write the same address");
    let changed = Config { player_listen: "[::1]:0".parse().unwrap(), ..config };
    let second = Listeners::bind(&changed, Some(first.try_clone().unwrap())).unwrap();
    assert_eq!(address(&second).0, api);
    assert_ne!(address(&second).1, player);
}

#[test]
fn messages_of_versions_without_slots_are_understood() {
    let read = |text: &str| serde_json::from_str::<Message>(text).unwrap();
    assert_eq!(
        read(r#"{"message":"prepared"}"#),
        Message::Prepared { counts_slots: false, continues_membership: false }
    );
    assert_eq!(read(r#"{"message":"go"}"#), Message::Go { is_serving: false });
}
