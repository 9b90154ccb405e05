//! delta-kernel-rs on a table that Unity Catalog governs, by its crates for that.
//!
//!     kernel_judge URL TOKEN CATALOG SCHEMA TABLE
//!
//! `unity_judges.py` says what it is told, and what it answers.

use std::error::Error;
use std::io::{stdin, stdout, BufRead, Write};
use std::sync::Arc;

use delta_kernel::arrow::array::{AsArray, Int64Array, RecordBatch};
use delta_kernel::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::object_store::local::LocalFileSystem;
use delta_kernel::transaction::{CommitResult, UpdateTableOperation};
use delta_kernel::{Engine, Snapshot};
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use delta_kernel_default_engine::{DefaultEngine, DefaultEngineBuilder};
use delta_kernel_unity_catalog::{snapshot_builder_from_load_table, UCCommitter};
use serde_json::{json, Value};
use unity_catalog_delta_client_api::TableIdentifier;
use unity_catalog_delta_rest_client::{ClientConfig, UCDeltaTableClient, UCUpdateTableRestClient};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Judge {
    config: ClientConfig,
    client: UCDeltaTableClient,
    engine: Arc<DefaultEngine<TokioMultiThreadExecutor>>,
    catalog: String,
    schema: String,
    table: String,
}

impl Judge {
    async fn load(&self) -> Outcome<(String, Arc<Snapshot>)> {
        let loaded = self.client.load_table(&self.catalog, &self.schema, &self.table).await?;
        let snapshot = snapshot_builder_from_load_table(&loaded)?.build(self.engine.as_ref())?;
        Ok((loaded.metadata.table_uuid, snapshot))
    }

    fn committer(&self, table_id: &str) -> Outcome<UCCommitter<UCUpdateTableRestClient>> {
        let client = UCUpdateTableRestClient::new(self.config.clone())?;
        let name = TableIdentifier::new(
            self.catalog.clone(),
            self.schema.clone(),
            self.table.clone(),
        );
        Ok(UCCommitter::new(Arc::new(client), table_id, name))
    }

    /// The kernel leaves lost races to who uses it, and names them in the text of an error.
    async fn append(&self, id: i64) -> Outcome<Value> {
        let field = Field::new("id", DataType::Int64, true);
        let column = Arc::new(Int64Array::from(vec![id]));
        let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column])?;
        let rows = ArrowEngineData::new(rows);
        let engine = self.engine.as_ref();
        loop {
            let (table_id, snapshot) = self.load().await?;
            let mut transaction = snapshot
                .update_table(UpdateTableOperation::Write, "kernel_judge", true)
                .build(engine, Box::new(self.committer(&table_id)?))?;
            let context = transaction.write_state()?.write_context_builder().build()?;
            transaction.add_files(engine.write_parquet(&rows, &context).await?);
            match transaction.commit(engine) {
                Ok(CommitResult::Committed(done)) => {
                    let made = done.post_commit_snapshot().ok_or("no snapshot")?;
                    made.publish(engine, &self.committer(&table_id)?)?;
                    return Ok(Value::Null);
                }
                Ok(_) => continue,
                Err(error) if error.to_string().contains("CommitVersionConflict") => continue,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn rows(&self) -> Outcome<Value> {
        let (_, snapshot) = self.load().await?;
        let scan = snapshot.scan_builder().build()?;
        let mut ids: Vec<i64> = Vec::new();
        for batch in scan.execute(self.engine.clone() as Arc<dyn Engine>)? {
            let batch = batch?.into_any().downcast::<ArrowEngineData>();
            let batch: RecordBatch = (*batch.map_err(|_| "no Arrow data")?).into();
            let column = batch.column_by_name("id").ok_or("no column id")?;
            ids.extend(column.as_primitive::<Int64Type>().values());
        }
        Ok(json!(ids))
    }

    async fn answer(&self, line: &str) -> Outcome<Value> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["append", id] => self.append(id.parse()?).await,
            ["rows"] => self.rows().await,
            _ => Err(format!("no command: {line}").into()),
        }
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("URL TOKEN CATALOG SCHEMA TABLE");
    let config = ClientConfig::build(next()?, next()?).build()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let executor = TokioMultiThreadExecutor::new(runtime.handle().clone());
    let engine = DefaultEngineBuilder::new(Arc::new(LocalFileSystem::new()))
        .with_task_executor(Arc::new(executor))
        .build();
    let judge = Judge {
        client: UCDeltaTableClient::new(config.clone())?,
        config,
        engine: Arc::new(engine),
        catalog: next()?,
        schema: next()?,
        table: next()?,
    };
    for line in stdin().lock().lines() {
        // The kernel's committer has to be called within a runtime of several threads.
        let answered = runtime.block_on(async {
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(judge.answer(&line?))
            })
        });
        let said = match answered {
            Ok(done) => json!({"done": done}),
            Err(error) => json!({"error": error.to_string()}),
        };
        writeln!(stdout(), "{said}")?;
    }
    Ok(())
}
