//! The names of records in refusals.

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::matching::GuideAlias;
use domain::guide::source::GuideSource;
use domain::integration::{Delivery, Integration, Subscription};
use domain::lineup::Lineup;
use domain::login::DeviceLogin;
use domain::logo::Logo;
use domain::notice::Notice;
use domain::output_profile::OutputProfile;
use domain::personal_playlist::PersonalPlaylist;
use domain::recording::Recording;
use domain::recording::rules::RecordingRule;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::tuner::TunerDevice;
use domain::undo::UndoEntry;
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;

/// Name of a record type in the message that a record is missing.
pub trait Noun {
    const NOUN: &'static str;
}

macro_rules! nouns {
    ($($type:ty = $noun:literal),+ $(,)?) => {
        $(impl Noun for $type { const NOUN: &'static str = $noun; })+
    };
}

nouns! {
    Account = "M3UAccount",
    Channel = "Channel",
    Group = "ChannelGroup",
    GuideSource = "EPGSource",
    GuideChannel = "EPGData",
    Lineup = "ChannelProfile",
    CoreSetting = "CoreSettings",
    DeviceLogin = "DeviceLogin",
    Notice = "Notification",
    OutputProfile = "OutputProfile",
    ServerGroup = "ServerGroup",
    Stream = "Stream",
    StreamProfile = "StreamProfile",
    TunerDevice = "HDHRDevice",
    User = "User",
    UserGroup = "Group",
    UserAgent = "UserAgent",
    UndoEntry = "UndoEntry",
    Recording = "Recording",
    GuideAlias = "GuideAlias",
    RecordingRule = "RecordingRule",
    Logo = "Logo",
    PersonalPlaylist = "PersonalPlaylist",
    Delivery = "DeadLetter",
    Integration = "Integration",
    Subscription = "EventSubscription",
}
