//! `/api/accounts/initialize-superuser/`: creates the first admin of a new installation, from a local network only.

use std::net::IpAddr;

use actors::now_ms;
use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User, UserLevel};
use http::header::{HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, StatusCode};
use resource_derive::{Body, View};
use serde::Serialize;

use super::users::{CHARS_MAX, PASSWORD_CHARS_MAX, check_email, check_name};
use crate::http::network::Networks;
use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

/// The first admin.
#[derive(Clone, Debug, Body)]
pub(crate) struct FirstAdmin {
    /// Letters, digits and `@ . + - _`.
    #[field(chars_max = USERNAME_CHARS_MAX, example = "admin")]
    username: String,
    /// Stored as a slow hash.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    password: Secret,
    /// Email address, for information only.
    #[field(blank, chars_max = CHARS_MAX)]
    email: Option<String>,
}

/// State of the initial setup.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SetupView {
    /// Whether an admin exists. If so, this endpoint changes nothing.
    superuser_exists: bool,
    /// The caller's address as seen by the gateway.
    #[field(example = "192.168.1.5")]
    client_ip: String,
    /// Whether the caller may create the first admin now.
    setup_allowed: bool,
}

/// RequestHeaders by which a proxy names the client it forwards for.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/accounts/initialize-superuser/";
    vec![
        Route::get(path, Access::Anyone, "Returns whether the first admin still has to be created.", retrieve),
        Route::post(
            path,
            Access::Anyone,
            "Creates the first admin, from loopback and private addresses only. Changes nothing if an admin exists.",
            create,
        )
        .refuses(
            StatusCode::FORBIDDEN,
            "The caller is outside the local networks, uses a proxy, or sends the request from a page of another site.",
        ),
    ]
}

async fn retrieve(call: Call) -> Result<SetupView, Refusal> {
    Ok(setup(&call))
}

async fn create(call: Call, first: FirstAdmin) -> Result<SetupView, Refusal> {
    let now = setup(&call);
    if now.superuser_exists {
        return Ok(now);
    }
    if !now.setup_allowed {
        return Err(Refusal::network());
    }
    let username = check_name(&first.username)?;
    let email = check_email(first.email.unwrap_or_default())?;
    let password = call.app.auth.hash(first.password.expose().to_owned()).await?;
    call.write(move |write| {
        // Another request may have created one in the meantime.
        if write.all::<User>()?.iter().any(is_admin) {
            return Ok(());
        }
        let id = UserId(write.next_id::<User>()?);
        let user = User::new(id, username, UserLevel::Admin, now_ms());
        let user = User { email, password: Some(password), is_staff: true, is_superuser: true, ..user };
        Ok(write.put(&user)?)
    })
    .await?;
    Ok(setup(&call))
}

/// Returns whether the user has every permission, or will have when activated again.
fn is_admin(user: &User) -> bool {
    user.effective_level() == UserLevel::Admin
}

fn setup(call: &Call) -> SetupView {
    let superuser_exists = call.app.models.users.load().iter().any(|it| is_admin(it));
    let address = call.caller.address().to_canonical();
    let setup_allowed = !superuser_exists && is_local(address, &call.headers);
    SetupView { superuser_exists, client_ip: address.to_string(), setup_allowed }
}

fn is_local(address: IpAddr, headers: &HeaderMap) -> bool {
    // The address of a proxy does not reveal the client, which may be anywhere on the Internet.
    let is_direct = FORWARDED.iter().all(|it| !headers.contains_key(*it));
    is_direct && Networks::local().contains(address) && !is_cross_site(headers)
}

/// A browser in the local network may run a page from any site. It names that site in `Origin`.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap_or_default());
    let host = text(HOST);
    text(ORIGIN).is_some_and(|origin| origin.split_once("://").map(|(_, host)| host) != host)
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;

    use super::*;

    #[test]
    fn the_first_admin_is_created_from_a_local_network_without_a_proxy_or_a_page_of_another_site() {
        let check = |address: &str, headers: &[(&'static str, &'static str)], expected: bool| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            assert_eq!(is_local(address.parse().unwrap(), &headers.collect()), expected, "{address}");
        };
        for local in ["127.0.0.1", "::1", "192.168.1.5", "::ffff:10.0.0.5", "fd00::5"] {
            check(local, &[], true);
            check(local, &[("host", "nas:9191"), ("origin", "http://nas:9191")], true);
            check(local, &[("host", "nas:9191"), ("origin", "https://elsewhere.example")], false);
            check(local, &[("host", "nas:9191"), ("origin", "null")], false);
            for header in FORWARDED {
                check(local, &[(header, "127.0.0.1")], false);
            }
        }
        for remote in ["192.0.2.1", "100.64.0.1", "2001:db8::1"] {
            check(remote, &[], false);
        }
    }
}
