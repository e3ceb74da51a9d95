//! sqlx and tokio-postgres: prepared statements in binary, transactions, pools, streams, COPY,
//! errors.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::types::{Decimal, Uuid, chrono::NaiveDate};
use sqlx::{Column, Connection, Executor, FromRow, Row, TypeInfo};
use tokio_postgres::{NoTls, SimpleQueryMessage};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, FromRow)]
struct Line {
    id: i32,
    name: Option<String>,
    amount: Option<Decimal>,
    day: Option<NaiveDate>,
    key: Option<Uuid>,
    bytes: Option<Vec<u8>>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let port = std::env::var("TCP_PORT")?.parse()?;
    with_sqlx(port).await?;
    with_tokio_postgres(port).await
}

async fn with_sqlx(port: u16) -> Result<()> {
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).username("ann").database("my");
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await?;
    pool.execute("CREATE TABLE t (id int PRIMARY KEY, name text, amount numeric(10, 2), day date, key uuid, bytes bytea)").await?;
    for id in 1..=5 {
        let done = sqlx::query("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(id)
            .bind((id != 2).then(|| format!("name {id}")))
            .bind(Decimal::new(i64::from(id) * 125, 2))
            .bind(NaiveDate::from_ymd_opt(2024, 2, 28 + u32::from(id == 1)))
            .bind(Uuid::from_u128(id as u128))
            .bind(vec![id as u8, 0])
            .execute(&pool)
            .await?;
        assert_eq!(done.rows_affected(), 1);
    }
    let lines: Vec<Line> = sqlx::query_as("SELECT * FROM t WHERE id <= $1 ORDER BY id").bind(2).fetch_all(&pool).await?;
    for line in lines {
        println!("{} {:?} {:?} {:?} {:?} {:?}", line.id, line.name, line.amount, line.day, line.key, line.bytes);
    }
    let row = sqlx::query("SELECT count(*) AS n, sum(amount) AS s, avg(id) AS a FROM t").fetch_one(&pool).await?;
    let kinds: Vec<_> = row.columns().iter().map(|column| format!("{}:{}", column.name(), column.type_info().name())).collect();
    println!("{kinds:?} {}", row.get::<i64, _>(0));
    let mut transaction = pool.begin().await?;
    sqlx::query("DELETE FROM t").execute(&mut *transaction).await?;
    let mut inner = transaction.begin().await?;
    let error = sqlx::query("SELECT nonsense FROM t").execute(&mut *inner).await.unwrap_err();
    println!("{:?}", error.as_database_error().and_then(|error| error.code()));
    inner.rollback().await?;
    println!("{}", sqlx::query_scalar::<_, i64>("SELECT count(*) FROM t").fetch_one(&mut *transaction).await?);
    transaction.rollback().await?;
    println!("{}", sqlx::query_scalar::<_, i64>("SELECT count(*) FROM t").fetch_one(&pool).await?);
    // The macros of sqlx also request plans as JSON, to find out which columns may be NULL.
    match pool.describe("SELECT id, name FROM t WHERE id = $1").await {
        Ok(described) => println!("described: {} columns", described.columns().len()),
        Err(error) => println!("described: {error}"),
    }
    pool.close().await;
    Ok(())
}

async fn with_tokio_postgres(port: u16) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(&format!("host=127.0.0.1 port={port} user=ann dbname=my"), NoTls).await?;
    let driver = tokio::spawn(connection);
    let statement = client.prepare("SELECT id, name FROM t WHERE id >= $1 ORDER BY id").await?;
    println!("{:?} {:?}", statement.params(), statement.columns().iter().map(|it| it.type_().name()).collect::<Vec<_>>());
    // Three at a time over one connection: the client sends them without waiting for answers.
    let (five, four, three) =
        (client.query(&statement, &[&5]), client.query(&statement, &[&4]), client.query(&statement, &[&3]));
    let (five, four, three) = tokio::join!(five, four, three);
    println!("{} {} {}", five?.len(), four?.len(), three?.len());
    for message in client.simple_query("SELECT 1 AS a; SELECT 'x' AS b").await? {
        if let SimpleQueryMessage::Row(row) = message {
            println!("{:?}", row.get(0));
        }
    }
    let error = client.execute("INSERT INTO t (id) VALUES (1)", &[]).await.unwrap_err();
    println!("{:?}", error.code());
    drop(client);
    driver.await??;
    Ok(())
}
