# The same rules, under the same ids, as those of `archiver lifecycle apply`: that command finds nothing to change here,
# and a plan nothing to change after it. A rule for each class and none besides that expires anything: what is on hold
# has no rule, and an object without a class stays.
resource "aws_s3_bucket_lifecycle_configuration" "store" {
  bucket = aws_s3_bucket.store.id

  dynamic "rule" {
    for_each = local.days

    content {
      id     = "archiver-${rule.key}"
      status = "Enabled"

      filter {
        dynamic "and" {
          for_each = var.prefix == "" ? [] : [local.keys]

          content {
            prefix = and.value
            tags   = { (local.retention.tag) = rule.key }
          }
        }

        dynamic "tag" {
          for_each = var.prefix == "" ? [local.retention.tag] : []

          content {
            key   = tag.value
            value = rule.key
          }
        }
      }

      expiration {
        days = rule.value
      }

      noncurrent_version_expiration {
        noncurrent_days = local.retention.classes[rule.key].noncurrent_days
      }
    }
  }

  rule {
    id     = "archiver-uploads"
    status = "Enabled"

    filter {
      prefix = local.keys
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = local.retention.abort_days
    }
  }

  rule {
    id     = "archiver-markers"
    status = "Enabled"

    filter {
      prefix = local.keys
    }

    expiration {
      expired_object_delete_marker = true
    }
  }

  depends_on = [aws_s3_bucket_versioning.store]
}
