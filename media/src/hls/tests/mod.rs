mod machine;
mod playlists;
