//! The settings of the channels of one group.

use std::sync::Arc;

use regex::Regex;
use serde_json::{Map, Value};

use crate::account_group::AccountGroup;
use crate::channel::ChannelNumber;
use crate::ids::{GroupId, GuideSourceId, LogoId, StreamProfileId};
use crate::name_cleaning::NameCleaner;
use crate::pattern::{self, Pattern, PatternError};

/// How the channels of a group get their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberingMode {
    /// The free numbers from the start of the range.
    #[default]
    Fixed,
    /// The number of the provider; where it is missing or taken, a free number from the fallback on.
    Provider,
    /// The lowest free numbers.
    NextAvailable,
}

/// The order in which new channels get their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncOrder {
    /// The order of the latest playlist.
    #[default]
    Provider,
    Name,
    TvgId,
    UpdatedAt,
}

/// The settings of a group, read from its link with the account.
#[derive(Debug, Clone, Default)]
pub struct SyncSettings {
    /// The group of the channels, if it is not that of the streams.
    pub group_override: Option<GroupId>,
    /// Changes the names.
    pub rename: Option<Pattern>,
    /// Takes marks of the provider off the names, after `rename`. Not in the link, but in the settings of the gateway.
    pub cleaner: Arc<NameCleaner>,
    /// Only streams with a matching name get a channel.
    pub include: Option<Regex>,
    /// Streams with a matching name get no channel.
    pub exclude: Option<Regex>,
    pub order: SyncOrder,
    pub is_reversed: bool,
    pub stream_profile: Option<StreamProfileId>,
    /// The logo of the channels, if it is not that of the streams.
    pub custom_logo: Option<LogoId>,
    /// The address of that logo, which is not in the link.
    pub custom_logo_url: Option<String>,
    /// The guide source whose channels are linked with the channels.
    pub custom_guide: Option<GuideSourceId>,
    /// Whether the channels have no guide id, so that their programmes are made from their names.
    pub without_guide: bool,
    /// The channel profiles in which new channels are enabled; `None` is all.
    pub channel_profiles: Option<Vec<u32>>,
    pub mode: NumberingMode,
    pub start: Option<ChannelNumber>,
    pub end: Option<ChannelNumber>,
    /// The first number for streams without a number of the provider.
    pub fallback: Option<ChannelNumber>,
    /// Whether every refresh closes the gaps that removed channels leave.
    pub is_compact: bool,
}

/// The reason why a setting is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct SyncSettingsError {
    pub field: &'static str,
    pub reason: String,
}

/// Maximum number of channel profiles of one group.
const CHANNEL_PROFILES_MAX: usize = 1_000;

impl SyncSettings {
    /// Reads and checks the settings. Missing, `null` and empty values are unset.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn read(link: &AccountGroup) -> Result<Self, SyncSettingsError> {
        let of = Properties(&link.custom_properties);
        if let (Some(start), Some(end)) = (link.sync_start, link.sync_end)
            && end < start
        {
            return Err(error("auto_sync_channel_end", "must be >= auto_sync_channel_start"));
        }
        let find = of.text("name_regex_pattern")?;
        let replace = of.text("name_replace_pattern")?.unwrap_or_default();
        let rename = find.map(|it| Pattern::new(it, replace)).transpose();
        Ok(Self {
            group_override: of.id("group_override")?.map(GroupId),
            rename: rename.map_err(|it| invalid("name_regex_pattern", &it))?,
            cleaner: Arc::default(),
            include: of.regex("name_match_regex")?,
            exclude: of.regex("name_match_exclude_regex")?,
            order: of.choice(
                "channel_sort_order",
                &[
                    ("provider", SyncOrder::Provider),
                    ("name", SyncOrder::Name),
                    ("tvg_id", SyncOrder::TvgId),
                    ("updated_at", SyncOrder::UpdatedAt),
                ],
            )?,
            is_reversed: of.flag("channel_sort_reverse")?,
            stream_profile: of.id("stream_profile_id")?.map(StreamProfileId),
            custom_logo: of.id("custom_logo_id")?.map(LogoId),
            custom_logo_url: None,
            custom_guide: of.id("custom_epg_id")?.filter(|it| *it != 0).map(GuideSourceId),
            without_guide: of.flag("force_dummy_epg")? && of.id("custom_epg_id")?.is_none_or(|it| it == 0),
            channel_profiles: of.ids("channel_profile_ids")?,
            mode: of.choice(
                "channel_numbering_mode",
                &[
                    ("fixed", NumberingMode::Fixed),
                    ("provider", NumberingMode::Provider),
                    ("next_available", NumberingMode::NextAvailable),
                ],
            )?,
            start: link.sync_start,
            end: link.sync_end,
            fallback: of.number("channel_numbering_fallback")?,
            is_compact: of.flag("compact_numbering")?,
        })
    }

    /// Returns the first number that the gateway may choose itself.
    pub(super) fn first(&self) -> ChannelNumber {
        let first = match self.mode {
            NumberingMode::Provider => self.fallback.or(self.start),
            NumberingMode::Fixed | NumberingMode::NextAvailable => self.start,
        };
        first.unwrap_or(ChannelNumber::ONE)
    }

    /// Returns whether the gateway may choose this number itself.
    pub(super) fn is_in_range(&self, number: ChannelNumber) -> bool {
        number >= self.first() && self.end.is_none_or(|it| number <= it)
    }
}

fn error(field: &'static str, reason: impl Into<String>) -> SyncSettingsError {
    SyncSettingsError { field, reason: reason.into() }
}

fn invalid(field: &'static str, cause: &PatternError) -> SyncSettingsError {
    error(field, cause.to_string())
}

/// The properties of a group, in the forms that clients send.
struct Properties<'a>(&'a Map<String, Value>);

impl<'a> Properties<'a> {
    fn get(&self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|it| !it.is_null() && it.as_str() != Some(""))
    }

    fn text(&self, field: &'static str) -> Result<Option<&'a str>, SyncSettingsError> {
        let text = |it: &'a Value| it.as_str().ok_or_else(|| error(field, "is not a text"));
        self.get(field).map(text).transpose()
    }

    fn regex(&self, field: &'static str) -> Result<Option<Regex>, SyncSettingsError> {
        let compile = |it| pattern::compile(it, false).map_err(|it| invalid(field, &it));
        self.text(field)?.map(compile).transpose()
    }

    fn flag(&self, field: &'static str) -> Result<bool, SyncSettingsError> {
        match self.get(field) {
            None => Ok(false),
            Some(it) => it.as_bool().ok_or_else(|| error(field, "is not true or false")),
        }
    }

    fn id(&self, field: &'static str) -> Result<Option<u32>, SyncSettingsError> {
        self.get(field).map(|it| id(it).ok_or_else(|| error(field, "is not an id"))).transpose()
    }

    fn ids(&self, field: &'static str) -> Result<Option<Vec<u32>>, SyncSettingsError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let ids = value.as_array().filter(|it| it.len() <= CHANNEL_PROFILES_MAX);
        let ids = ids.and_then(|it| it.iter().map(id).collect());
        ids.map(Some).ok_or_else(|| error(field, "is not a list of ids"))
    }

    fn number(&self, field: &'static str) -> Result<Option<ChannelNumber>, SyncSettingsError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.trim().parse().map(Some).map_err(|_| error(field, "is not a channel number"))
    }

    fn choice<T: Copy + Default>(
        &self,
        field: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, SyncSettingsError> {
        let Some(text) = self.text(field)? else { return Ok(T::default()) };
        let found = choices.iter().find(|it| it.0 == text).map(|it| it.1);
        let names = || choices.iter().map(|it| it.0).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| error(field, format!("must be one of: {}", names())))
    }
}

/// Reads an id: a number, or a text of digits.
fn id(value: &Value) -> Option<u32> {
    let number = value.as_u64().or_else(|| value.as_str().and_then(|it| it.trim().parse().ok()));
    number.and_then(|it| u32::try_from(it).ok())
}
