//! Client libraries of player apps, run against the gateway.

mod slow {
    use domain::channel::Channel;
    use domain::group::Group;
    use domain::ids::GroupId;
    use serde_json::{Value, json};

    use crate::library::put_titles;
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::tools::{installed, text_of};
    use crate::support::users::{TestUser, create_user};

    /// Returns the path of a script of this folder.
    fn script(name: &str) -> String {
        format!("{}/tests/it/player_clients/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    async fn last_line(program: &str, arguments: &[&str]) -> Value {
        let text = text_of(installed(program).to_str().unwrap(), arguments).await;
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Starts a gateway with three channels, one of them without a number and a group, with films and series, and a user.
    async fn set_up() -> (TestGateway, TestUser) {
        let list = "#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:1/1.ts\n#EXTINF:-1,Two\nhttp://127.0.0.1:1/2.ts\n\
                    #EXTINF:-1,Three\nhttp://127.0.0.1:1/3.ts\n";
        let gateway = Setup::new().list(list).start().await;
        let [one, two, three] = ["One", "Two", "Three"].map(|it| gateway.channel(it).clone());
        let changed = [
            Channel { number: Some("7".parse().unwrap()), group: Some(GroupId(500)), ..one },
            Channel {
                number: Some("4.1".parse().unwrap()),
                group: Some(GroupId(500)),
                is_adult: true,
                ..two
            },
            Channel { number: None, group: None, ..three },
        ];
        gateway
            .change(move |write| {
                write.put(&Group::new(GroupId(500), "News & more"))?;
                changed.iter().try_for_each(|it| write.put(it))?;
                put_titles(write)
            })
            .await;
        // The libraries do not escape passwords.
        let anna = create_user(&gateway, "anna", |it| {
            it.player_password = Some(domain::secret::Secret::new("remote"));
            it.stream_limit = 2;
        })
        .await;
        (gateway, TestUser { password: "remote".to_owned(), ..anna })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pyxtream_loads_the_channels_of_a_user() {
        let (gateway, anna) = set_up().await;
        let address = format!("http://{}", gateway.address);
        let folder = tempfile::tempdir().unwrap();
        let load = async |password: &str| {
            let arguments =
                [&*script("xtream.py"), &address, &anna.name, password, folder.path().to_str().unwrap()];
            last_line("bin/python", &arguments).await
        };
        let found = load(&anna.password).await;
        assert_eq!((&found["authenticated"], &found["loaded"]), (&json!(true), &json!(true)));
        assert_eq!(
            found["groups"],
            json!([["Drama", 901], ["News & more", 500], ["Other", i32::MAX], ["Space", 902]])
        );
        let url = |name: &str| format!("{address}/live/anna/remote/{}.ts", gateway.channel(name).id);
        let three = format!("id-{}", gateway.channel("Three").id);
        let expected = json!([
            ["Two", "News & more", "4.1", 1, url("Two"), null],
            ["One", "News & more", "7", 0, url("One"), null],
            ["Three", "Other", three, 0, url("Three"), null],
        ]);
        assert_eq!(found["channels"], expected);
        let movie = |id: u32| format!("{address}/movie/anna/remote/{id}.mkv");
        assert_eq!(
            found["movies"],
            json!([["Metropolis", "Drama", movie(5)], ["../../Escape", "Drama", movie(6)]])
        );
        assert_eq!(found["series"], json!(["Andor"]));
        let guide = json!({ "epg_listings": [] });
        assert_eq!([&found["short_guide"], &found["guide"]], [&guide, &guide]);
        let refused = load("wrong").await;
        assert_eq!((&refused["authenticated"], &refused["loaded"]), (&json!(false), &json!(false)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_javascript_library_reads_the_account_and_the_channels_of_a_user() {
        let (gateway, anna) = set_up().await;
        let address = format!("http://{}", gateway.address);
        let packages = installed("npm");
        let arguments =
            [&*script("xtream.mjs"), packages.to_str().unwrap(), &address, &anna.name, &anna.password];
        let found = last_line("bin/node", &arguments).await;
        assert_eq!(found["refused"], "Unauthorized");
        let profile = &found["profile"];
        assert_eq!((&profile["username"], &profile["maxConnections"]), (&json!("anna"), &json!(2)));
        assert_eq!(profile["expiresAt"], "2038-01-19T03:14:07.000Z");
        assert_eq!(profile["createdAt"], "1970-01-01T00:00:00.000Z");
        assert_eq!(found["server"]["port"], gateway.address.port().to_string());
        let names = |key: &str, list: &Value| -> Vec<Value> {
            list.as_array().unwrap().iter().map(|it| it[key].clone()).collect()
        };
        assert_eq!(names("id", &found["categories"]), [json!("500"), json!("2147483647")]);
        let channels = &found["channels"];
        assert_eq!(names("name", channels), [json!("Two"), json!("One"), json!("Three")]);
        assert_eq!(names("epgId", channels)[..2], [json!("4.1"), json!("7")]);
        assert_eq!(names("categoryIds", channels)[0], json!(["500"]));
        let one = format!("{address}/live/anna/remote/{}.ts", gateway.channel("One").id);
        assert_eq!(names("url", channels)[1], json!(one));
        assert_eq!(found["guide"], json!([[], []]));
        let lists = |kind: &str, n: usize| names("name", &found[kind][n]);
        assert_eq!([lists("movies", 0), lists("shows", 0)], [[json!("Drama")], [json!("Space")]]);
        assert_eq!(lists("movies", 1), [json!("Metropolis"), json!("../../Escape")]);
        assert_eq!(lists("shows", 1), [json!("Andor")]);
        assert_eq!(found["movie"]["name"], "Metropolis");
        assert_eq!(found["show"]["name"], "Andor");
        assert_eq!(found["unknown"], json!(["Not Found", "Not Found"]));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn javascript_parsers_read_the_playlist_of_a_user() {
        let (gateway, anna) = set_up().await;
        let origin = format!("http://{}", gateway.address);
        let url = format!("{origin}/get.php?username=anna&password={}&type=m3u_plus", anna.password);
        let packages = installed("npm");
        let arguments = [&*script("playlist.mjs"), packages.to_str().unwrap(), &url];
        let found = last_line("bin/node", &arguments).await;

        let guide = &found["parser"]["header"]["attrs"]["x-tvg-url"];
        assert!(guide.as_str().unwrap().starts_with(&format!("{origin}/xmltv.php?username=anna&password=")));
        assert_eq!(
            (guide, guide),
            (&found["playlist"]["headers"]["xTvgUrl"], &found["playlist"]["headers"]["urlTvg"])
        );
        let without_number = format!("id-{}", gateway.channel("Three").id);
        let expected = [
            ("Two", "4.1", "News & more", Some("4.1")),
            ("One", "7", "News & more", Some("7")),
            ("Three", &without_number, "", None),
        ];
        let lists =
            (found["parser"]["items"].as_array().unwrap(), found["playlist"]["channels"].as_array().unwrap());
        assert_eq!((lists.0.len(), lists.1.len()), (expected.len(), expected.len()));
        for ((name, id, group, number), (parsed, read)) in expected.iter().zip(lists.0.iter().zip(lists.1)) {
            assert_eq!((&parsed["name"], &parsed["tvg"]["id"]), (&json!(name), &json!(id)));
            assert_eq!((&read["name"], &read["tvgId"]), (&json!(name), &json!(id)));
            assert_eq!((&parsed["group"]["title"], &read["groupTitle"]), (&json!(group), &json!(group)));
            assert_eq!(read["extras"]["tvg-chno"].as_str(), *number, "{name}");
            assert_eq!(parsed["url"], read["url"]);
            let address = parsed["url"].as_str().unwrap();
            let id = gateway.channel(name).id;
            assert!(
                address.starts_with(&format!("{origin}/live/anna/")) && address.ends_with(&format!("/{id}"))
            );
        }
    }
}
