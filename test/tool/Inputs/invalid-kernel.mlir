module attributes {stable_mosaic.version = 99999 : i64} {}
