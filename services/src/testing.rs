//! A server of pictures for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

/// A server that answers every request with this body. Returns its address and the number of requests.
pub async fn server(body: &'static [u8]) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of the loopback network");
    let address = listener.local_addr().expect("the address of a listener");
    let n_requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = socket.write_all(head.as_bytes()).await;
            let _ = socket.write_all(body).await;
        }
    });
    (format!("http://{address}/logo"), n_requests)
}
