//! A client of the WebSocket, based on `tokio-tungstenite`.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::header::HeaderName;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::Message;

use super::WAIT_MAX;

/// An open WebSocket.
pub struct WebSocketClient {
    socket: WebSocketStream<TcpStream>,
    /// The response to the upgrade.
    pub response: Response<Option<Vec<u8>>>,
}

/// The close code, if the gateway sent one.
pub type Closed = Option<u16>;

/// Returns the upgrade request for this path.
pub fn upgrade(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("the name of a header");
        request.headers_mut().insert(name, HeaderValue::from_str(value).expect("the value of a header"));
    }
    request
}

impl WebSocketClient {
    /// Opens a socket; returns the status code if the upgrade is refused.
    pub async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<WebSocketClient, u16> {
        let socket = TcpSocket::new_v4().expect("a socket");
        WebSocketClient::over(socket, address, upgrade(address, path, headers)).await
    }

    /// Does the same over a socket whose options are already set.
    pub async fn over(
        socket: TcpSocket,
        address: SocketAddr,
        request: Request,
    ) -> Result<WebSocketClient, u16> {
        let socket = socket.connect(address).await.expect("the port is open");
        match timeout(WAIT_MAX, tokio_tungstenite::client_async(request, socket)).await.expect("an answer") {
            Ok((socket, response)) => Ok(WebSocketClient { socket, response }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no answer to the upgrade: {error}"),
        }
    }

    /// Returns the next text frame, or the close code.
    pub async fn next(&mut self) -> Result<Value, Closed> {
        loop {
            match timeout(WAIT_MAX, self.socket.next()).await.expect("a frame or the end of the socket") {
                Some(Ok(Message::Text(text))) => {
                    let mut frame: Value = serde_json::from_str(&text).expect("frames are JSON");
                    // Statistics are a text, as clients of the reference service read them.
                    if let Some(stats) = frame["data"]["stats"].as_str() {
                        frame["data"]["stats"] = serde_json::from_str(stats).expect("statistics are JSON");
                    }
                    return Ok(frame);
                }
                Some(Ok(Message::Close(frame))) => {
                    // Completes the closing handshake.
                    let _ = self.socket.next().await;
                    return Err(frame.map(|it| it.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// Returns the data of the next frame of this type; others are skipped.
    #[track_caller]
    pub fn kind(&mut self, kind: &str) -> impl Future<Output = Value> {
        self.until(kind, |_| true)
    }

    /// Returns the data of the next frame of this type that matches.
    #[track_caller]
    pub fn until(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        let waiting = async move {
            loop {
                match self.next().await {
                    Ok(mut frame) if frame["data"]["type"] == kind && fits(&frame["data"]) => {
                        return frame["data"].take();
                    }
                    Ok(_) => {}
                    Err(closed) => panic!("{caller}: no {kind}, the socket was closed: {closed:?}"),
                }
            }
        };
        async move {
            let came = timeout(WAIT_MAX, waiting).await;
            came.unwrap_or_else(|_| panic!("{caller}: timeout waiting for the frame {kind}"))
        }
    }

    /// Returns all remaining frames and the close code.
    pub async fn remaining(&mut self) -> (Vec<Value>, Closed) {
        let mut frames = Vec::new();
        let end = async {
            loop {
                match self.next().await {
                    Ok(frame) => frames.push(frame),
                    Err(closed) => return closed,
                }
            }
        };
        let closed = timeout(WAIT_MAX, end).await.expect("the socket ends");
        (frames, closed)
    }

    pub async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("it can be sent");
    }

    /// Sends a ping and waits for the pong.
    pub async fn ping(&mut self) {
        self.socket.send(Message::Ping("there?".into())).await.expect("it can be sent");
        let answer = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Pong(bytes))) => return assert_eq!(&bytes[..], b"there?"),
                    Some(Ok(_)) => {}
                    ended => panic!("no answer to a ping: {ended:?}"),
                }
            }
        };
        timeout(WAIT_MAX, answer).await.expect("an answer to a ping");
    }
}
