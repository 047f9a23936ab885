//! Asks questions for a device.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::account::{Account, AccountProfile};
use domain::catchup::TIME_ZONE;
use domain::egress::Reach;
use domain::ids::AccountId;
use domain::portal::{
    ANSWER_BYTES_MAX, Handshake, PortalDevice, PortalError, PortalPlace, PortalProfileState, PortalQuestion,
    Refusal, SessionStep, endpoints, headers, read_answer, read_handshake, read_login, read_profile,
};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use jiff::tz::TimeZone;
use reqwest::StatusCode;
use serde_json::Value;
use tracing::{debug, info};

use super::session::{DeviceSession, DeviceToken, SessionState};
use crate::clock::now_ms;
use crate::fetch::{Fetch, FetchError, FetchLimits};

/// Limits of a question other than a list of channels.
const QUESTION_LIMITS: FetchLimits = FetchLimits {
    connect_timeout: Duration::from_secs(8),
    read_timeout: Duration::from_secs(10),
    total_timeout: Duration::from_secs(15),
    bytes_max: ANSWER_BYTES_MAX as u64,
};

/// Why a question has no answer. No text contains an address beyond its host, or a value of the device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortalFailure {
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    #[error("{0}")]
    Portal(PortalError),
    /// The portal has refused the device, so it is not asked for a while.
    #[error("the portal refused the device; it is asked again in {} s", .0.as_secs().max(1))]
    Waits(Duration),
}

/// A device of an account at its portal. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PortalClient {
    fetch: Fetch,
    account: AccountId,
    place: PortalPlace,
    device: PortalDevice,
    headers: RequestHeaders,
    reach: Reach,
    zone: String,
    has_proxy: bool,
    session: Arc<DeviceSession>,
}

/// The address and the headers of a question whose answer is read elsewhere.
pub(crate) struct PortalRequest {
    pub(crate) url: SourceUrl,
    pub(crate) headers: RequestHeaders,
    pub(crate) reach: Reach,
    token: u64,
}

impl PortalClient {
    /// Returns the device of an account profile, at this address of its portal. `None` if the account has no portal, or the
    /// profile no device.
    pub(crate) fn new(
        fetch: &Fetch,
        account: &Account,
        profile: &AccountProfile,
        place: PortalPlace,
    ) -> Option<Self> {
        account.list.portal()?;
        let device = profile.device.as_deref()?.clone();
        let zone = account.custom_properties.get(TIME_ZONE).and_then(Value::as_str).unwrap_or("UTC");
        Some(Self {
            fetch: fetch.for_account(account).within(QUESTION_LIMITS),
            account: account.id,
            session: fetch.portals().session((account.id, profile.id), &device, &place.server),
            place,
            device,
            headers: account.headers.clone(),
            reach: Reach::typed(account.allowed_networks),
            zone: zone.to_owned(),
            has_proxy: account.proxy.is_some(),
        })
    }

    pub(super) fn session(&self) -> &Arc<DeviceSession> {
        &self.session
    }

    /// Returns whether the gateway may read a link. A proxy carries HTTP only, and nothing of the account may be fetched around
    /// it.
    pub(super) fn may_read(&self, link: &SourceUrl) -> bool {
        link.is_http() || !self.has_proxy && matches!(link.scheme(), "udp" | "rtp")
    }

    pub(crate) fn server(&self) -> &SourceUrl {
        &self.place.server
    }

    /// Returns the zone in which the device asks.
    pub(super) fn zone(&self) -> TimeZone {
        TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC)
    }

    /// Returns a text of the portal without the values of the device.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.device.redacted(text)
    }

    /// Asks a question. A token that has ended is renewed once.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn ask(&self, question: &PortalQuestion<'_>) -> Result<Value, PortalFailure> {
        let token = self.token().await?;
        match self.ask_with(question, &token).await {
            Err(failure) if failure.is_unauthorized() => {
                self.refused(token.number, failure).await?;
                let token = self.token().await?;
                let answer = self.ask_with(question, &token).await;
                if answer.as_ref().is_err_and(PortalFailure::is_unauthorized) {
                    self.give_up(token.number).await;
                }
                answer
            }
            answer => answer,
        }
    }

    /// Returns the request of a list of channels, whose answer is read while it arrives.
    ///
    /// # Errors
    /// The device has no token.
    pub(crate) async fn request(
        &self,
        question: &PortalQuestion<'_>,
    ) -> Result<PortalRequest, PortalFailure> {
        let DeviceToken { token, endpoint, number } = self.token().await?;
        let url = question.url(&endpoint, &self.device);
        let headers = headers(&self.headers, &endpoint, &self.device, Some(&token), &self.zone);
        Ok(PortalRequest { url, headers, reach: self.reach, token: number })
    }

    /// Notes that a list was refused. The caller asks once more if this returns no error.
    ///
    /// # Errors
    /// There is no new handshake now.
    pub(crate) async fn list_refused(&self, request: &PortalRequest) -> Result<(), PortalFailure> {
        self.refused(request.token, PortalFailure::Portal(PortalError::Unauthorized)).await
    }

    /// Returns the entry point that has answered; `None` before the first handshake.
    pub(crate) async fn endpoint(&self) -> Option<SourceUrl> {
        self.session.state.lock().await.token.as_ref().map(|it| it.endpoint.clone())
    }

    async fn ask_with(
        &self,
        question: &PortalQuestion<'_>,
        token: &DeviceToken,
    ) -> Result<Value, PortalFailure> {
        let answer = self.send(question, &token.endpoint, Some(&token.token)).await;
        if answer.is_ok() {
            let mut state = self.session.state.lock().await;
            if state.token.as_ref().is_some_and(|it| it.number == token.number) {
                state.times.answered();
            }
        }
        answer
    }

    /// Returns a token: the present one, or that of a handshake.
    async fn token(&self) -> Result<DeviceToken, PortalFailure> {
        let mut state = self.session.state.lock().await;
        match state.times.next(state.token.is_some(), now_ms()) {
            SessionStep::Wait(ms) => {
                Err(PortalFailure::Waits(Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
            }
            SessionStep::Ask => state.token.clone().ok_or(PortalFailure::Portal(PortalError::NoToken)),
            SessionStep::Handshake => self.shake_hands(&mut state).await,
        }
    }

    /// Notes that a token was refused, and forgets it if it may be renewed.
    async fn refused(&self, number: u64, failure: PortalFailure) -> Result<(), PortalFailure> {
        let mut state = self.session.state.lock().await;
        if state.token.as_ref().is_some_and(|it| it.number != number) {
            // Another question has renewed it.
            return Ok(());
        }
        match state.times.token_refused(now_ms()) {
            Refusal::Renew => {
                state.token = None;
                Ok(())
            }
            Refusal::GiveUp => {
                state.token = None;
                Err(failure)
            }
        }
    }

    /// Notes that a new token was refused as well.
    async fn give_up(&self, number: u64) {
        let mut state = self.session.state.lock().await;
        if state.token.as_ref().is_some_and(|it| it.number == number) {
            state.token = None;
            state.times.device_refused(now_ms());
        }
    }

    /// Gets a token, and tells the portal which device it is.
    async fn shake_hands(&self, state: &mut SessionState) -> Result<DeviceToken, PortalFailure> {
        state.times.shakes_hands(now_ms());
        state.n_handshakes += 1;
        let number = state.n_handshakes;
        info!(account.id = %self.account, "a device of the account shakes hands with its portal");
        let found = self.find_endpoint().await;
        if found.as_ref().is_err_and(|it| !it.is_refusal()) {
            state.times.not_answered();
        }
        let done = match found {
            Ok((endpoint, handshake)) => self.introduce(number, endpoint, handshake).await,
            Err(failure) => Err(failure),
        };
        match &done {
            Ok(token) => {
                state.times.accepted();
                state.token = Some(token.clone());
            }
            Err(PortalFailure::Portal(error)) if error.is_refusal() => state.times.device_refused(now_ms()),
            // The handshake counts: it has ended the former session.
            Err(_) => {}
        }
        done
    }

    /// Tells the portal which device has the token of a handshake.
    async fn introduce(
        &self,
        number: u64,
        endpoint: SourceUrl,
        handshake: Handshake,
    ) -> Result<DeviceToken, PortalFailure> {
        let token = DeviceToken { token: handshake.token, endpoint, number };
        let is_invalid = handshake.is_invalid;
        let question = PortalQuestion::Profile { second_step: false, is_invalid };
        let profile = self.send(&question, &token.endpoint, Some(&token.token)).await?;
        let mut profile = read_profile(&profile, &self.device).map_err(PortalFailure::Portal)?;
        if profile.state == PortalProfileState::LoginRequired {
            if !self.device.has_login() {
                return Err(PortalFailure::Portal(PortalError::LoginRequired));
            }
            let answer = self.send(&PortalQuestion::Login, &token.endpoint, Some(&token.token)).await?;
            read_login(&answer).map_err(PortalFailure::Portal)?;
            let question = PortalQuestion::Profile { second_step: true, is_invalid };
            let answer = self.send(&question, &token.endpoint, Some(&token.token)).await?;
            profile = read_profile(&answer, &self.device).map_err(PortalFailure::Portal)?;
        }
        self.session.watchdog_seconds.store(profile.watchdog_seconds, Ordering::Relaxed);
        match profile.state {
            PortalProfileState::Accepted => Ok(token),
            PortalProfileState::LoginRequired => Err(PortalFailure::Portal(PortalError::LoginRefused)),
            PortalProfileState::Refused(why) => Err(PortalFailure::Portal(PortalError::Refused(why))),
        }
    }

    /// Shakes hands at the first entry point that answers like a portal.
    async fn find_endpoint(&self) -> Result<(SourceUrl, Handshake), PortalFailure> {
        let mut first = None;
        for endpoint in endpoints(&self.place.server, self.place.endpoint.as_ref()) {
            let answered = self.send(&PortalQuestion::Handshake, &endpoint, None).await;
            let failure = match answered.map(|js| read_handshake(&js)) {
                Ok(Ok(handshake)) => return Ok((endpoint, handshake)),
                // It answers, so it is one.
                Ok(Err(error)) => return Err(PortalFailure::Portal(error)),
                Err(failure) => failure,
            };
            if !failure.may_be_elsewhere() {
                return Err(failure);
            }
            debug!(account.id = %self.account, "no portal at an entry point: {failure}");
            first.get_or_insert(failure);
        }
        Err(first.unwrap_or(PortalFailure::Portal(PortalError::NotAPortal)))
    }

    async fn send(
        &self,
        question: &PortalQuestion<'_>,
        endpoint: &SourceUrl,
        token: Option<&Secret>,
    ) -> Result<Value, PortalFailure> {
        let url = question.url(endpoint, &self.device);
        let headers = headers(&self.headers, endpoint, &self.device, token, &self.zone);
        // Portals block devices that ask several questions at once.
        let _turn = self.fetch.turn(self.account).await;
        let body = self.fetch.get(url.expose(), &headers, self.reach).await;
        let bytes = body.map_err(PortalFailure::from)?.whole().await.map_err(PortalFailure::from)?;
        read_answer(&bytes).map_err(PortalFailure::Portal)
    }
}

impl PortalFailure {
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Portal(error) if error.is_unauthorized())
    }

    /// Returns whether the portal refuses the device.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Portal(error) => error.is_refusal(),
            Self::Waits(_) => true,
            Self::Fetch(_) => false,
        }
    }

    /// Returns whether another question soon may be answered.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_temporary())
    }

    /// Returns whether another entry point may answer.
    fn may_be_elsewhere(&self) -> bool {
        match self {
            Self::Portal(error) => error.is_wrong_place() || error.is_unauthorized(),
            Self::Fetch(FetchError::Status { status, .. }) => status.is_client_error(),
            Self::Fetch(FetchError::Redirect { .. }) => true,
            Self::Fetch(_) | Self::Waits(_) => false,
        }
    }
}

impl From<FetchError> for PortalFailure {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Status { status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, .. } => {
                Self::Portal(PortalError::Unauthorized)
            }
            error => Self::Fetch(error),
        }
    }
}
