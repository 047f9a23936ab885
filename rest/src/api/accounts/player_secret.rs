//! `/api/accounts/users/…/player-secret/revoke/`: makes the player secret of a user invalid, which players send in place
//! of the player password.

use domain::user::User;
use http::StatusCode;
use route_frame::access::{ADMIN, STREAMER};
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use server::reply::Refusal;

use crate::record::find;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/api/accounts/users/me/player-secret/revoke/",
            STREAMER,
            "Revokes the caller's player secret. Playlists that contain it have to be fetched again.",
            revoke_own,
        ),
        Route::post(
            "/api/accounts/users/{id}/player-secret/revoke/",
            ADMIN,
            "Revokes the player secret of a user. Playlists that contain it have to be fetched again.",
            revoke_of,
        )
        .refuses(StatusCode::NOT_FOUND, "The user does not exist."),
    ]
}

async fn revoke_own(call: Call) -> Result<NoContent, Refusal> {
    let id = call.user()?.id.0;
    revoke(&call, id).await
}

async fn revoke_of(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    revoke(&call, id).await
}

async fn revoke(call: &Call, id: u32) -> Result<NoContent, Refusal> {
    call.write(move |write| {
        let mut user = find::<User>(write, id)?;
        user.revoke_player_secret();
        write.put(&user)?;
        Ok(NoContent)
    })
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{INACTIVE, Rest, STANDARD, STREAMER as STREAMER_USER};

    async fn status(rest: &Rest, user: u32, secret: &str) -> u16 {
        let name = rest.user(user).username.clone();
        rest.send("GET", &format!("/player_api.php?username={name}&password={secret}"), &[], "").await.status
    }

    fn secret(rest: &Rest, user: u32) -> String {
        rest.auth.player_secret(&rest.user(user)).expose().to_owned()
    }

    #[tokio::test]
    async fn a_player_secret_logs_players_in_until_it_is_revoked() {
        let rest = Rest::start().await;
        let first = secret(&rest, STREAMER_USER);
        assert_eq!(status(&rest, STREAMER_USER, &first).await, 200);
        assert_eq!(status(&rest, STANDARD, &first).await, 401, "it belongs to one user");
        assert_eq!(status(&rest, INACTIVE, &secret(&rest, INACTIVE)).await, 401);
        let stream = rest.send("HEAD", &format!("/live/streamer/{first}/1.ts"), &[], "").await;
        assert_eq!(stream.status, 404, "the login is accepted, and the channel does not exist");

        let own = "/api/accounts/users/me/player-secret/revoke/";
        assert_eq!(rest.streamer("POST", own, Value::Null).await.status, 204);
        let second = secret(&rest, STREAMER_USER);
        assert_eq!(status(&rest, STREAMER_USER, &first).await, 401);
        assert_eq!(status(&rest, STREAMER_USER, &second).await, 200);

        let of_user = format!("/api/accounts/users/{STREAMER_USER}/player-secret/revoke/");
        assert_eq!(rest.standard("POST", &of_user, Value::Null).await.status, 403);
        assert_eq!(rest.admin("POST", &of_user, Value::Null).await.status, 204);
        assert_eq!(status(&rest, STREAMER_USER, &second).await, 401);
        let unknown = "/api/accounts/users/99/player-secret/revoke/";
        assert_eq!(rest.admin("POST", unknown, Value::Null).await.status, 404);
    }

    #[tokio::test]
    async fn a_changed_player_password_revokes_the_player_secret_and_the_same_one_does_not() {
        let rest = Rest::start().await;
        let first = secret(&rest, STREAMER_USER);
        let path = format!("/api/accounts/users/{STREAMER_USER}/");
        let change = async |password: Value| {
            let body = json!({ "custom_properties": { "xc_password": password } });
            assert_eq!(rest.admin("PATCH", &path, body).await.status, 200);
            secret(&rest, STREAMER_USER)
        };
        let same = rest.user(STREAMER_USER).player_password.clone().unwrap();
        assert_eq!(change(json!(same.expose())).await, first);
        let second = change(json!("another")).await;
        assert_ne!(second, first);
        assert_ne!(change(Value::Null).await, second);
    }
}
