//! `/api/accounts/users/…/addresses/`: what a user enters in players, for each interface.

use domain::user::User;
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use player::recordings::{RECORDINGS_GUIDE, RECORDINGS_PLAYLIST};
use resource_derive::View;
use route_frame::access::{ADMIN, STREAMER};
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::ShownSecret;
use serde::Serialize;
use server::reply::Refusal;
use services::recording_rules::dvr_settings;
use url::form_urlencoded::Serializer;

use crate::choice::{Named, choice};
use crate::context::RestCall;

/// The addresses of a user for players.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PlayerAddressesView {
    /// Address of the gateway for players, as seen from this client.
    #[field(example = "http://192.168.1.5:9191")]
    server_url: String,
    /// User name for players.
    #[field(example = "anna")]
    username: String,
    /// Password for players: the player password or, if the user has none, the player secret.
    password: ShownSecret,
    /// One entry for each interface.
    addresses: Vec<PlayerAddressView>,
}

/// The address of one interface.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PlayerAddressView {
    /// The interface.
    #[field(example = "m3u")]
    kind: Named<PlayerInterface>,
    /// Name of the channel profile of a tuner; `null` for all other interfaces, and for the tuner with all channels.
    channel_profile: Option<String>,
    /// Address to enter. It contains the password, except where a header is named.
    url: String,
    /// The header in which the API key must be sent.
    #[field(example = "X-API-Key")]
    header: Option<&'static str>,
    /// Whether this version of the gateway serves the interface.
    is_served: bool,
}

choice!(
    /// An interface for players.
    enum PlayerInterface {
        Xtream = "xtream",
        M3u = "m3u",
        Xmltv = "xmltv",
        M3uWithKey = "m3u_with_key",
        XmltvWithKey = "xmltv_with_key",
        Recordings = "recordings",
        RecordingsGuide = "recordings_guide",
        Tuner = "tuner",
    }
);

/// Header of the API key.
const API_KEY: &str = "X-API-Key";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/accounts/users/me/addresses/",
            STREAMER,
            "Returns the addresses of the caller for players.",
            own,
        ),
        Route::get(
            "/api/accounts/users/{id}/addresses/",
            ADMIN,
            "Returns the addresses of a user for players.",
            addresses_of_user,
        )
        .refuses(StatusCode::NOT_FOUND, "The user does not exist."),
    ]
}

async fn own(call: Call) -> Result<PlayerAddressesView, Refusal> {
    Ok(addresses(&call, call.user()?))
}

async fn addresses_of_user(call: Call) -> Result<PlayerAddressesView, Refusal> {
    let user =
        call.rest().models.users.load().get(call.id()?).cloned().ok_or_else(Refusal::unknown::<User>)?;
    Ok(addresses(&call, &user))
}

fn addresses(call: &Call, user: &User) -> PlayerAddressesView {
    let server_url = call.player_origin();
    let password = user.player_password.clone().unwrap_or_else(|| call.rest().auth.player_secret(user));
    let with_login = |path: &str, more: &[(&str, &str)]| {
        let mut query = Serializer::new(String::new());
        query.append_pair("username", &user.username).append_pair("password", password.expose());
        query.extend_pairs(more);
        format!("{server_url}{path}?{}", query.finish())
    };
    let entry = |kind, path: &str, url: String| PlayerAddressView {
        kind: Named(kind),
        channel_profile: None,
        url,
        header: None,
        is_served: crate::serves(path),
    };
    let with_key = |kind, path: &str| {
        let address = entry(kind, path, format!("{server_url}{path}"));
        PlayerAddressView { header: Some(API_KEY), ..address }
    };
    let mut addresses = vec![
        // Apps append the path themselves.
        entry(PlayerInterface::Xtream, "/player_api.php", server_url.clone()),
        entry(
            PlayerInterface::M3u,
            "/get.php",
            with_login("/get.php", &[("type", "m3u_plus"), ("output", "ts")]),
        ),
        entry(PlayerInterface::Xmltv, "/xmltv.php", with_login("/xmltv.php", &[])),
        with_key(PlayerInterface::M3uWithKey, "/playlist.m3u"),
        with_key(PlayerInterface::XmltvWithKey, "/api/epg.xml"),
    ];
    if dvr_settings(&call.rest().models).recordings_in_players {
        for (kind, path) in [
            (PlayerInterface::Recordings, RECORDINGS_PLAYLIST),
            (PlayerInterface::RecordingsGuide, RECORDINGS_GUIDE),
        ] {
            addresses.push(entry(kind, path, with_login(path, &[])));
        }
    }
    let lineups = call.rest().models.lineups.load();
    let names: Vec<_> = user.lineups.iter().filter_map(|it| Some(&lineups.get(it.0)?.name)).collect();
    if names.is_empty() {
        let path = "/tuner/discover.json";
        addresses.push(entry(PlayerInterface::Tuner, path, format!("{server_url}{path}")));
    }
    addresses.extend(names.into_iter().map(|name| {
        let part = utf8_percent_encode(name, NON_ALPHANUMERIC);
        let url = format!("{server_url}/tuner/{part}/discover.json");
        let address = entry(PlayerInterface::Tuner, "/tuner/{profile}/discover.json", url);
        PlayerAddressView { channel_profile: Some(name.clone()), ..address }
    }));
    PlayerAddressesView {
        server_url: server_url.clone(),
        username: user.username.clone(),
        password: ShownSecret(password),
        addresses,
    }
}

#[cfg(test)]
mod tests {
    use domain::core_settings::DVR_SETTINGS;
    use domain::ids::LineupId;
    use domain::lineup::Lineup;
    use domain::secret::Secret;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Rest, STREAMER as STREAMER_USER};

    #[tokio::test]
    async fn a_user_gets_the_addresses_of_every_player_interface_and_an_admin_those_of_all_users() {
        let rest = Rest::start().await;
        rest.put([Lineup::new(LineupId(1), "Kids & Co", true)]).await;
        let anna = User {
            player_password: Some(Secret::new("p&w d")),
            lineups: vec![LineupId(1)],
            ..(*rest.user(STREAMER_USER)).clone()
        };
        rest.put([anna.clone()]).await;
        let headers = [("authorization", &*rest.bearer(STREAMER_USER)), ("host", "nas:8000")];
        let own = rest.send("GET", "/api/accounts/users/me/addresses/", &headers, "").await;
        assert_eq!(own.status, 200, "{}", own.text);
        assert_eq!(
            (&own.body["server_url"], &own.body["password"]),
            (&json!("http://nas:9191"), &json!("p&w d"))
        );
        let url = |body: &Value, kind: &str| {
            let found = body["addresses"].as_array().unwrap().iter().find(|it| it["kind"] == kind);
            found.unwrap_or_else(|| panic!("no {kind}"))["url"].clone()
        };
        let login = "username=streamer&password=p%26w+d";
        assert_eq!(url(&own.body, "xtream"), "http://nas:9191");
        assert_eq!(url(&own.body, "m3u"), format!("http://nas:9191/get.php?{login}&type=m3u_plus&output=ts"));
        assert_eq!(url(&own.body, "xmltv"), format!("http://nas:9191/xmltv.php?{login}"));
        assert_eq!(url(&own.body, "tuner"), "http://nas:9191/tuner/Kids%20%26%20Co/discover.json");
        let recordings = format!("http://nas:9191/output/recordings.m3u?{login}");
        assert_eq!(url(&own.body, "recordings"), recordings);
        assert_eq!(
            url(&own.body, "recordings_guide"),
            format!("http://nas:9191/output/recordings.xml?{login}")
        );
        let with_key = &own.body["addresses"][3];
        assert_eq!((&with_key["header"], &with_key["is_served"]), (&json!("X-API-Key"), &json!(true)));

        let path = format!("/api/accounts/users/{STREAMER_USER}/addresses/");
        rest.put([User { player_password: None, lineups: Vec::new(), ..anna }]).await;
        let unset = rest.admin("GET", &path, Value::Null).await.body;
        let secret = rest.auth.player_secret(&rest.user(STREAMER_USER));
        assert_eq!(unset["password"], json!(secret.expose()));
        let xmltv = url(&unset, "xmltv");
        assert!(xmltv.as_str().unwrap().ends_with(&format!("&password={}", secret.expose())), "{xmltv}");
        assert!(url(&unset, "tuner").as_str().unwrap().ends_with("/tuner/discover.json"));
        let rows = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
        let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == DVR_SETTINGS).unwrap();
        let settings = format!("/api/core/settings/{}/", row["id"]);
        let value = json!({ "value": { "recordings_in_players": false } });
        assert_eq!(rest.admin("PATCH", &settings, value).await.status, 200);
        let without = rest.admin("GET", &path, Value::Null).await.body;
        let is_of_recordings = |it: &Value| it["kind"].as_str().unwrap().starts_with("recordings");
        assert!(!without["addresses"].as_array().unwrap().iter().any(is_of_recordings), "{without}");
        assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 403);
        assert_eq!(rest.admin("GET", "/api/accounts/users/99/addresses/", Value::Null).await.status, 404);
    }
}
