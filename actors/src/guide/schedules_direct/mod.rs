//! Schedules Direct: a client that never hammers the service, lineups for admins, and the guide of a source.
//!
//! A login is a token, which is used until it expires and never requested twice at the same time. A refusal that another
//! request would meet as well, such as maintenance or too many logins, pauses every request of the account.

mod client;
mod input;

use std::sync::Arc;
use std::time::Duration;

use domain::guide::schedules_direct::{
    LineupEntry, PostalLineup, ServiceCountry, ServiceFault, ServiceStatus, countries, headends, lineups,
};
use domain::guide::source::GuideSource;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

pub use self::client::{SchedulesDirect, ServiceError};
pub(super) use self::input::SchedulesDirectInput;

/// Time for which the status and the lineups of an account are shown without another request, unless they are changed.
const ACCOUNT_KEPT: Duration = Duration::from_secs(60);
/// Time for which the countries are shown without another request.
const COUNTRIES_KEPT: Duration = Duration::from_secs(86_400);

/// The account of a source at the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    pub status: ServiceStatus,
    pub lineups: Vec<LineupEntry>,
    /// Number of lineups that can be added today, if the service has said it.
    pub changes_remaining: Option<u64>,
}

impl SchedulesDirect {
    /// Returns the status of the account of a source, and its lineups.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub async fn account(&self, source: &GuideSource) -> Result<ServiceAccount, ServiceError> {
        let login = self.login_of(source)?;
        let mut shown = login.shown.lock().await;
        if shown.account.as_ref().is_none_or(|it| it.0.elapsed() >= ACCOUNT_KEPT) {
            let status = ServiceStatus::from_answer(&self.json(source, Method::GET, "/status", None).await?);
            let lineups = match self.json(source, Method::GET, "/lineups", None).await {
                Ok(answer) => lineups(&answer),
                Err(ServiceError::Fault(ServiceFault::NoLineups)) => Vec::new(),
                Err(error) => return Err(error),
            };
            shown.account = Some((Instant::now(), status, lineups));
        }
        let (_, status, lineups) = shown.account.clone().expect("it was set above");
        Ok(ServiceAccount { status, lineups, changes_remaining: self.changes_remaining(source) })
    }

    /// Returns the countries in which the service has lineups.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub async fn countries(&self, source: &GuideSource) -> Result<Arc<[ServiceCountry]>, ServiceError> {
        let login = self.login_of(source)?;
        let mut shown = login.shown.lock().await;
        if let Some((at, countries)) = &shown.countries
            && at.elapsed() < COUNTRIES_KEPT
        {
            return Ok(countries.clone());
        }
        let answer = self.json(source, Method::GET, "/available/countries", None).await?;
        let countries: Arc<[_]> = countries(&answer).into();
        shown.countries = Some((Instant::now(), countries.clone()));
        Ok(countries)
    }

    /// Returns the lineups of a postal code.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub async fn search(
        &self,
        source: &GuideSource,
        country: &str,
        postal_code: &str,
    ) -> Result<Vec<PostalLineup>, ServiceError> {
        let [country, postal_code] = [country, postal_code].map(encoded);
        let path = format!("/headends?country={country}&postalcode={postal_code}");
        Ok(headends(&self.json(source, Method::GET, &path, None).await?))
    }

    /// Adds a lineup to the account of a source. Returns the number of lineups that can still be added today.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub async fn add_lineup(&self, source: &GuideSource, lineup: &str) -> Result<Option<u64>, ServiceError> {
        self.change_lineup(source, Method::PUT, lineup).await
    }

    /// Removes a lineup from the account of a source. Returns the number of lineups that can still be added today.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub async fn remove_lineup(
        &self,
        source: &GuideSource,
        lineup: &str,
    ) -> Result<Option<u64>, ServiceError> {
        self.change_lineup(source, Method::DELETE, lineup).await
    }

    async fn change_lineup(
        &self,
        source: &GuideSource,
        method: Method,
        lineup: &str,
    ) -> Result<Option<u64>, ServiceError> {
        let answer = self.json(source, method, &format!("/lineups/{}", encoded(lineup)), None).await;
        self.login_of(source)?.shown.lock().await.account = None;
        if matches!(answer, Err(ServiceError::Fault(ServiceFault::NoChangesLeft))) {
            self.set_changes_remaining(source, 0);
        }
        let remaining = match &answer?["changesRemaining"] {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64(),
        };
        if let Some(remaining) = remaining {
            self.set_changes_remaining(source, remaining);
        }
        Ok(self.changes_remaining(source))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
