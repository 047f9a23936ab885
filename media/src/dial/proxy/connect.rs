//! `CONNECT` of HTTP.

use tokio::io::{AsyncRead, AsyncWrite};

use super::{receive, send};
use crate::dial::DialAddress;
use crate::error::Cause;
use crate::source::base64;

/// Maximum length of the head of the answer, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;

pub(super) async fn handshake<S>(
    socket: &mut S,
    login: Option<&(String, String)>,
    to: &DialAddress,
) -> Result<(), Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    send(socket, request(login, to)?.as_bytes()).await?;
    // Byte by byte, because what follows the head belongs to the server behind the proxy.
    let mut head = Vec::new();
    while !is_complete(&head) {
        if head.len() == HEAD_BYTES_MAX {
            return Err(Cause::Proxy("the head of its answer is too long".into()));
        }
        let [byte] = receive(socket).await?;
        head.push(byte);
    }
    match status(&head) {
        Some(200..=299) => Ok(()),
        // Some proxies answer a wrong password with 401.
        Some(401 | 407) => Err(Cause::ProxyLogin),
        Some(status @ 500..) => Err(Cause::ProxyTarget(format!("status {status}"))),
        Some(status) => Err(Cause::Proxy(format!("it refuses a tunnel to this port with status {status}"))),
        None => Err(Cause::Proxy("its answer is not HTTP".into())),
    }
}

fn request(login: Option<&(String, String)>, to: &DialAddress) -> Result<String, Cause> {
    if to.host.bytes().any(|it| it.is_ascii_whitespace() || it.is_ascii_control()) {
        return Err(Cause::Address("its host is not valid in a request".into()));
    }
    let login = login.map(|(user, password)| {
        format!("Proxy-Authorization: Basic {}\r\n", base64(&format!("{user}:{password}")))
    });
    Ok(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{}\r\n", login.unwrap_or_default()))
}

fn is_complete(head: &[u8]) -> bool {
    head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n")
}

/// Returns the status of a response.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|it| *it == b'\n').next()?;
    let mut words = std::str::from_utf8(line.get(..line.len().min(64))?).ok()?.split_ascii_whitespace();
    words.next().filter(|it| it.starts_with("HTTP/"))?;
    words.next()?.parse().ok().filter(|it| (100..1000).contains(it))
}
