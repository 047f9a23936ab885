//! SOCKS 5: RFC 1928, with user and password as in RFC 1929.

use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{receive, send};
use crate::dial::DialAddress;
use crate::error::Cause;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const WITHOUT_LOGIN: u8 = 0;
const WITH_LOGIN: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

pub(super) async fn handshake<S>(
    socket: &mut S,
    login: Option<&(String, String)>,
    to: &DialAddress,
) -> Result<(), Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let request = request(to)?;
    let greeting: &[u8] = match login {
        Some(_) => &[VERSION, 2, WITHOUT_LOGIN, WITH_LOGIN],
        None => &[VERSION, 1, WITHOUT_LOGIN],
    };
    send(socket, greeting).await?;
    match (receive(socket).await?, login) {
        ([VERSION, WITHOUT_LOGIN], _) => {}
        ([VERSION, WITH_LOGIN], Some((user, password))) => {
            send(socket, &login_message(user, password)?).await?;
            let [_, status] = receive(socket).await?;
            if status != 0 {
                return Err(Cause::ProxyLogin);
            }
        }
        ([VERSION, NO_METHOD], _) => return Err(Cause::ProxyLogin),
        _ => return Err(not_socks()),
    }
    send(socket, &request).await?;
    let [version, status, _, kind] = receive(socket).await?;
    match (version, status) {
        (VERSION, 0) => {}
        (VERSION, status) => return Err(refusal(status)),
        _ => return Err(not_socks()),
    }
    // The address that the proxy connects from; its length is at most 255.
    let n_bytes = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => receive::<_, 1>(socket).await?[0].into(),
        _ => return Err(not_socks()),
    };
    for _ in 0..n_bytes + 2 {
        receive::<_, 1>(socket).await?;
    }
    Ok(())
}

/// Returns the request to connect. A name stays a name.
fn request(to: &DialAddress) -> Result<Vec<u8>, Cause> {
    let mut request = vec![VERSION, CONNECT, 0];
    match to.host.parse() {
        Ok(IpAddr::V4(it)) => {
            request.push(IPV4);
            request.extend(it.octets());
        }
        Ok(IpAddr::V6(it)) => {
            request.push(IPV6);
            request.extend(it.octets());
        }
        Err(_) => {
            request.push(NAME);
            push_text(&mut request, &to.host)?;
        }
    }
    request.extend(to.port.to_be_bytes());
    Ok(request)
}

fn login_message(user: &str, password: &str) -> Result<Vec<u8>, Cause> {
    let mut message = vec![LOGIN_VERSION];
    push_text(&mut message, user)?;
    push_text(&mut message, password)?;
    Ok(message)
}

/// Adds a text with its length.
fn push_text(into: &mut Vec<u8>, text: &str) -> Result<(), Cause> {
    let length = u8::try_from(text.len()).map_err(|_| Cause::Address("too long for the proxy".into()))?;
    into.push(length);
    into.extend(text.as_bytes());
    Ok(())
}

/// Converts the status of a refused request.
fn refusal(status: u8) -> Cause {
    match status {
        1 => Cause::ProxyTarget("general failure".into()),
        3 => Cause::ProxyTarget("network unreachable".into()),
        4 => Cause::ProxyTarget("host unreachable".into()),
        5 => Cause::ProxyTarget("connection refused".into()),
        6 => Cause::ProxyTarget("timed out".into()),
        2 => Cause::Proxy("its rules do not allow this connection".into()),
        _ => Cause::Proxy(format!("it refuses the connection with status {status}")),
    }
}

fn not_socks() -> Cause {
    Cause::Proxy("its answer is not SOCKS 5".into())
}
