//! `/api/accounts/initialize-superuser/`: the first admin of a new installation, made from its own network.

use std::net::IpAddr;

use actors::now_ms;
use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User, UserLevel};
use http::header::{HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, StatusCode};

use super::users::{CHARS_MAX, PASSWORD_CHARS_MAX, check_email, check_name};
use crate::http::network::Networks;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{Access, Route};

body! {
    /// The first admin.
    FirstAdmin {
        /// Letters, digits and `@ . + - _`.
        username: String [required(), chars_max(USERNAME_CHARS_MAX), example("admin")],
        /// Kept as a slow hash.
        password: Secret [required(), chars_max(PASSWORD_CHARS_MAX)],
        /// For people.
        email: String [blank(), chars_max(CHARS_MAX)],
    }
}

view! {
    /// Whether there is an admin already.
    Setup {
        /// Once there is one, nothing can be set up here any more.
        superuser_exists: bool,
        /// From where the caller comes, as seen here.
        client_ip: String [example("192.168.1.5")],
        /// Whether the first admin may be made from there, now.
        setup_allowed: bool,
    }
}

/// Headers by which a proxy says that it calls for somebody else.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/accounts/initialize-superuser/";
    vec![
        Route::get(path, Access::Anyone, "Says whether the first admin is still to be made.", show),
        Route::post(
            path,
            Access::Anyone,
            "Makes the first admin, from loopback and private addresses. Once there is one, does nothing.",
            create,
        )
        .refuses(
            StatusCode::FORBIDDEN,
            "The caller is not in the network of this installation, comes through a proxy, or from another page.",
        ),
    ]
}

async fn show(call: Call) -> Result<Setup, Refusal> {
    Ok(setup(&call))
}

async fn create(call: Call, first: FirstAdmin) -> Result<Setup, Refusal> {
    let now = setup(&call);
    if now.superuser_exists {
        return Ok(now);
    }
    if !now.setup_allowed {
        return Err(Refusal::network());
    }
    let username = check_name(&first.username.unwrap_or_default())?;
    let email = check_email(first.email.unwrap_or_default())?;
    let password = first.password.unwrap_or_else(|| Secret::new(""));
    let password = call.app.auth.hash(password.expose().to_owned()).await?;
    call.write(move |write| {
        // Somebody else may have been as quick.
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

/// A person who may do everything, now or once made active again.
fn is_admin(user: &User) -> bool {
    user.effective_level() == UserLevel::Admin
}

fn setup(call: &Call) -> Setup {
    let superuser_exists = call.app.models.users.load().iter().any(|it| is_admin(it));
    let address = call.caller.address().to_canonical();
    let setup_allowed = !superuser_exists && is_at_home(address, &call.headers);
    Setup { superuser_exists, client_ip: address.to_string(), setup_allowed }
}

fn is_at_home(address: IpAddr, headers: &HeaderMap) -> bool {
    // The address of a proxy says nothing about who stands behind it, and that may be the whole world.
    let is_direct = FORWARDED.iter().all(|it| !headers.contains_key(*it));
    is_direct && Networks::local().contains(address) && !is_of_another_page(headers)
}

/// A browser at home may show a page from anywhere, and says of what that page sends where it came from.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap_or_default());
    let host = text(HOST);
    text(ORIGIN).is_some_and(|origin| origin.split_once("://").map(|(_, host)| host) != host)
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;

    use super::*;

    #[test]
    fn the_first_admin_is_made_from_home_and_not_through_a_proxy_or_a_page_from_elsewhere() {
        let check = |address: &str, headers: &[(&'static str, &'static str)], expected: bool| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            assert_eq!(is_at_home(address.parse().unwrap(), &headers.collect()), expected, "{address}");
        };
        for home in ["127.0.0.1", "::1", "192.168.1.5", "::ffff:10.0.0.5", "fd00::5"] {
            check(home, &[], true);
            check(home, &[("host", "nas:9191"), ("origin", "http://nas:9191")], true);
            check(home, &[("host", "nas:9191"), ("origin", "https://elsewhere.example")], false);
            check(home, &[("host", "nas:9191"), ("origin", "null")], false);
            for header in FORWARDED {
                check(home, &[(header, "127.0.0.1")], false);
            }
        }
        for elsewhere in ["192.0.2.1", "100.64.0.1", "2001:db8::1"] {
            check(elsewhere, &[], false);
        }
    }
}
