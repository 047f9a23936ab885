//! Answers of proxies of any kind: nothing panics, and what follows the answer of a proxy stays in the socket.
#![no_main]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use media::dial::proxy::handshake_with;
use media::dial::{DialAddress, Proxy, ProxyProtocol};

fuzz_target!(|data: &[u8]| {
    // The first byte determines the protocol and whether there is a login.
    let Some((kind, answer)) = data.split_first() else { return };
    let protocol = match kind % 3 {
        0 => ProxyProtocol::Http,
        1 => ProxyProtocol::Https,
        _ => ProxyProtocol::Socks5,
    };
    let login = (kind & 0x80 != 0).then(|| ("user".to_owned(), "password".to_owned()));
    let proxy = Proxy { protocol, host: "proxy".to_owned(), port: 1, login };
    let to = DialAddress { secure: false, host: "tv.example".to_owned(), port: 80 };
    let mut handshake = pin!(handshake_with(answer, &proxy, &to));
    // Bytes in memory are never waited for.
    let Poll::Ready(done) = handshake.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it waits");
    };
    if let Ok(n_left) = done {
        assert!(n_left < answer.len());
    }
});
