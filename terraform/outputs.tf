output "bucket" {
  description = "Name of the bucket."
  value       = aws_s3_bucket.store.id

  # Not before everything stands that protects what is put there.
  depends_on = [
    aws_s3_bucket_lifecycle_configuration.store,
    aws_s3_bucket_object_lock_configuration.store,
    aws_s3_bucket_ownership_controls.store,
    aws_s3_bucket_policy.store,
    aws_s3_bucket_server_side_encryption_configuration.store,
  ]
}

output "store_url" {
  description = "Address of the store, as `store.url`."
  value       = local.store_url
}

output "region" {
  description = "Region of the bucket and the keys."
  value       = local.region
}

output "storage_key_arn" {
  description = "ARN of the key with which S3 encrypts."
  value       = aws_kms_key.storage.arn
}

output "archive_key_arn" {
  description = "ARN of the key that the program seals to."
  value       = aws_kms_key.archive.arn
}

output "role_arns" {
  description = "ARNs of the roles that were made, by role."
  value       = { for role, made in aws_iam_role.this : role => made.arn }
}

output "lifecycle_days" {
  description = "Days after which objects of each class expire; no other class does."
  value       = local.days
}

output "archiver_toml" {
  description = "Text of an `archiver.toml` for each role that was made. Paths of keys and lists of writers are the machine's own."
  value       = { for role, made in aws_iam_role.this : role => local.archiver_toml[role] }
}

locals {
  store_url = var.prefix == "" ? "s3://${var.bucket}" : "s3://${var.bucket}/${var.prefix}"

  # JSON strings and lists of them are TOML too.
  archiver_toml = {
    for role in local.roles : role => join("\n", concat(
      [
        "[store]",
        "url = ${jsonencode(local.store_url)}",
        "region = ${jsonencode(local.region)}",
      ],
      [for id in [var.store_id] : "id = ${jsonencode(id)}" if id != null],
      [for url in [var.emulator_endpoint] : "endpoint_url = ${jsonencode(url)}" if url != null],
      [
        "",
        "[keys]",
        "application = ${jsonencode(var.application)}",
        "kms = ${jsonencode([aws_kms_key.archive.arn])}",
        "recipients = ${jsonencode(concat([aws_kms_key.archive.arn], var.recipients, var.break_glass_recipients))}",
        "break_glass = ${jsonencode(var.break_glass_recipients)}",
      ],
      [for url in [var.emulator_endpoint] : "kms_endpoint_url = ${jsonencode(url)}" if url != null],
      [
        "",
        "[retention]",
        "sweeper = ${role == "sweeper"}",
      ],
      [for class in sort(keys(var.retention_days)) : "${class} = \"${local.days[class]}d\""],
      [
        "",
        "[audit]",
        "store = ${contains(["runner", "administrator"], role)}",
        "",
      ],
    ))
  }
}
